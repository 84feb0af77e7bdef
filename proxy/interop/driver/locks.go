// Lock libraries that know nothing of redlockd: each plays a story of its own,
// over a daemon on five masters of its own, one of which is killed.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// lockSteps that every program of a lock library reports, in this order.
var lockSteps = []string{"acquire", "contention", "extend", "release", "expiry", "killed", "close"}

// steps of the story that the run plays.
func (r run) steps() []string {
	if r.locks {
		return lockSteps
	}
	return steps
}

// lockRuns in the order of the table.
func lockRuns() []run {
	var all []run
	add := func(library, as, remark string, command ...string) {
		all = append(all, run{locks: true, library: library, as: as, remark: remark, command: command})
	}
	for _, library := range []string{"redis-py", "redis-py-asyncio", "python-redis-lock", "pottery"} {
		add(library, "lock library", "", "{built}/python-locks/bin/python", "-B", "{programs}/python-locks/locks.py", library)
	}
	for _, library := range []string{"redlock4", "redlock5", "redis-semaphore"} {
		add(library, "lock library, ioredis", "", "node", "{programs}/node-locks/locks.js", library)
		all[len(all)-1].environ = []string{"NODE_PATH={built}/node-locks/node_modules"}
	}
	add("redsync", "lock library, go-redis", "", "{built}/go-locks/locks", "redsync")
	add("redislock", "lock library, go-redis", "", "{built}/go-locks/locks", "redislock")
	add("rueidislock", "lock library, DisableCache", "renews by itself: nothing of it expires", "{built}/go-locks/locks", "rueidislock")
	return all
}

// lockLate is the master timeout: copies outlive their leases by it, and the
// programs wait for that.
const lockLate = "500ms"

// playLocks gives the program five masters and a daemon.
func playLocks(ctx context.Context, o options, s *stand, r run, number int) (out outcome) {
	began := time.Now()
	out.run = r
	defer func() { out.took = time.Since(began) }()
	own := &stand{dir: filepath.Join(s.dir, "locks-"+strconv.Itoa(number)), binary: s.binary, size: 5}
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
	d, err := startDaemon(own, strconv.Itoa(number), "--master-timeout", lockLate, "--no-ttl", "lease", "--long-ttl", "clamp")
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { d.process.terminate() }()
	d.masters = own.masters
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	out.follow(ctx, o, d, []string{"REDLOCKD_ADDR=" + d.address, "REDLOCKD_KEY=interop"})
	out.judge(false)
	if complaints := d.complaints(); complaints != "" {
		out.fail("the daemon's log: %s", complaints)
	}
	return out
}
