// prober evaluates scripts that were not seen before. That takes up to some
// milliseconds, too long for the reader of a socket and for the tasks that write
// replies. One goroutine at a time does it.

package rediscompat

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

const (
	// probesPerSecond bounds what scripts that are sent again and again may cost;
	// as many may come at once.
	probesPerSecond = 50
	// maxProbes bounds the jobs that wait.
	maxProbes = 64
)

// prober runs jobs one after another.
type prober struct {
	limiter *rate.Limiter
	open    atomic.Int32 // jobs that run or wait
	running sync.Mutex   // of the job that runs
}

// submit starts a job, or returns why it does not. The calls that wait for the jobs keep
// the daemon from stopping before.
func (p *prober) submit(job func()) error {
	if p.open.Add(1) > 1+maxProbes || !p.limiter.Allow() {
		p.open.Add(-1)
		return fmt.Errorf("unknown scripts: %d a second are looked at, %d may wait; nothing was done, try later", probesPerSecond, maxProbes)
	}
	go func() {
		defer p.open.Add(-1)
		p.running.Lock()
		defer p.running.Unlock()
		runRecovered(job)
	}()
	return nil
}

// runRecovered keeps a panic from ending the process.
func runRecovered(job func()) {
	defer func() {
		if reason := recover(); reason != nil {
			slog.Error("script recogniser panicked", "err", reason)
		}
	}()
	job()
}
