// The stories of unmodified lock libraries. Each runs its own story over its own daemon
// on five masters, and one master is killed.

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// lockSteps that every program of a lock library reports, in this order.
var lockSteps = []string{"acquire", "contention", "extend", "release", "expiry", "killed", "close"}

// suiteSteps are those of a library's own tests.
var suiteSteps = []string{"tests", "close"}

// suitePatience is how much more time than a story these have: they sleep much.
const suitePatience = 4

// refusedSteps are those of a library that the daemon does not serve.
var refusedSteps = []string{"refused", "close"}

// steps of the story that the run plays.
func (r run) steps() []string {
	switch {
	case r.refusal != "":
		return refusedSteps
	case r.suite:
		return suiteSteps
	case r.example:
		return r.exampleSteps()
	case r.cluster:
		return append(slices.Clone(steps), "dmlock", "wait")
	case r.locks:
		return slices.DeleteFunc(slices.Clone(lockSteps), func(step string) bool { return step == r.lacks })
	}
	return steps
}

// lockLate is the master timeout: copies outlive their leases by it, and the
// programs wait for that.
const lockLate = "500ms"

// playOwn gives the program masters of its own: five and a daemon, or three and two daemons
// that are a cluster.
func playOwn(ctx context.Context, o options, s *stand, r run, number int) (out outcome) {
	began := time.Now()
	out.run = r
	defer func() { out.took = time.Since(began) }()
	own := &stand{dir: filepath.Join(s.dir, "own-"+strconv.Itoa(number)), binary: s.binary, size: 5}
	settings := []string{"--master-timeout", lockLate, "--no-ttl", "lease", "--long-ttl", "clamp", "--ids-durability", "off"}
	environ := []string{"REDLOCKD_KEY=interop"}
	switch {
	case r.suite:
		settings = []string{"--compat-test", "--long-ttl", "clamp"}
		o.patience *= suitePatience
	case r.cluster:
		own.size, settings, environ = 3, []string{announced}, append(environ, "REDLOCKD_OUTAGE=end")
	}
	if err := os.Mkdir(own.dir, 0o700); err != nil {
		out.problem = err.Error()
		return out
	}
	own.data = memory()
	defer own.close()
	if err := own.start(ctx); err != nil {
		out.problem = err.Error()
		return out
	}
	d, err := startDaemon(own, strconv.Itoa(number), settings...)
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { d.process.terminate() }()
	d.masters = own.masters
	if r.cluster {
		if d.peer, err = startDaemon(own, strconv.Itoa(number)+"-peer", settings...); err != nil {
			out.problem = err.Error()
			return out
		}
		defer func() { d.peer.process.terminate() }()
	}
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	if r.recorded != "" {
		out.replay(o, d)
	} else {
		out.follow(ctx, o, d, append(environ, "REDLOCKD_ADDR="+d.address))
	}
	out.judge(false)
	for one := d; one != nil; one = one.peer {
		if complaints := one.complaints(); complaints != "" {
			out.fail("the daemon's log: %s", complaints)
		}
	}
	return out
}
