// Performance: how long writes of a master take, and which master timeout fits.
//
// A lock is a SET with an expiry. A master answers it after it has written its append-only
// file as appendfsync says, so the time of a PING tells nothing. The writes go to a key
// of random name behind redlockd:, which no lock can have, and which ends by itself.

package setup

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

const (
	maxWrites = 200
	// maxWriting ends the writes of a slow master: with 5 s a disk that needs 25 ms for each
	// write completes all.
	maxWriting = 5 * time.Second
	// writesKept is the expiry of the key, if it could not be deleted.
	writesKept = time.Minute
	// timeoutFactor is by how much the timeout exceeds the slowest write: an answer may wait
	// for the flush before it, which takes as long, and under load both may take twice that.
	timeoutFactor = 4
	// minFittingTimeout is the default: with less, a step of a clock costs more votes.
	minFittingTimeout = 100 * time.Millisecond
	timeoutStep       = 10 * time.Millisecond
)

// timeWrites times writes of the kind that locks are. All masters are written to at once,
// as by a daemon.
func (g *group) timeWrites(f *finding, link wire.Link) {
	key := g.options.KeyPrefix + "redlockd:check:" + admission.NewIncarnationID()
	if err := selectDB(link, 0); err != nil {
		f.problem("does not select database 0: %v", err)
		return
	}
	now := g.options.Clock.Now
	for began := now(); len(f.writes) < maxWrites && now()-began < maxWriting; {
		sent := now()
		reply, err := wire.AskOne(link, "SET", key, strconv.Itoa(len(f.writes)), "PX", strconv.FormatInt(writesKept.Milliseconds(), 10))
		if err = cmp.Or(err, reply.Err); err != nil {
			f.problem("a write failed: %v", err)
			break
		}
		f.writes = append(f.writes, now()-sent)
	}
	_, _ = wire.AskOne(link, "DEL", key) // if that fails, it expires
	slices.Sort(f.writes)
}

// reportWrites writes a line for each master, what a lock waits for, and the timeout that fits.
func (g *group) reportWrites(all []*finding, out io.Writer) {
	var slowest *finding
	last := func(f *finding) time.Duration { return f.writes[len(f.writes)-1] }
	for _, f := range all {
		n := len(f.writes)
		if n == 0 {
			fmt.Fprintf(out, "%s: no write was timed\n", f.master.Name)
			continue
		}
		fmt.Fprintf(out, "%s: %d writes: half within %s, 99 of 100 within %s, the slowest %s\n", f.master.Name, n,
			shortDuration(f.writes[n/2]), shortDuration(f.writes[n*99/100]), shortDuration(last(f)))
		if slowest == nil || last(f) > last(slowest) {
			slowest = f
		}
	}
	if slowest == nil {
		return
	}
	reportQuorum(all, out)
	fits := fittingTimeout(last(slowest))
	verdict := "fits"
	if g.options.MasterTimeout < fits {
		verdict = "is too short"
	}
	fmt.Fprintf(out, "--master-timeout: %s or more fits; the present %s %s\n", fits, g.options.MasterTimeout, verdict)
	fmt.Fprintf(out, "the rule: %d times the slowest write (%s on %s), in steps of %s, at least %s. A flush may wait for the one before it, and under load both may take twice as long. "+
		"Run this while the machines do their usual work\n", timeoutFactor, shortDuration(last(slowest)), slowest.master.Name, timeoutStep, minFittingTimeout)
}

// reportQuorum writes which master a lock waits for: the last of its nearest quorum.
func reportQuorum(all []*finding, out io.Writer) {
	half := func(f *finding) time.Duration { return f.writes[len(f.writes)/2] }
	timed := slices.DeleteFunc(slices.Clone(all), func(f *finding) bool { return len(f.writes) == 0 })
	slices.SortStableFunc(timed, func(a, b *finding) int { return cmp.Compare(half(a), half(b)) })
	quorum := pool.Quorum(len(all))
	if len(timed) < quorum {
		return
	}
	last := timed[quorum-1]
	fmt.Fprintf(out, "a lock waits %s: for %s, the last of the nearest quorum (%d of %d); masters farther away cost it nothing while these vote\n",
		shortDuration(half(last)), last.master.Name, quorum, len(all))
}

// fittingTimeout is the master timeout for masters whose slowest write took this long.
func fittingTimeout(slowest time.Duration) time.Duration {
	steps := (timeoutFactor*slowest + timeoutStep - 1) / timeoutStep
	return max(minFittingTimeout, steps*timeoutStep)
}

func shortDuration(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
