// prober evaluates scripts that were not seen before. That takes up to some
// milliseconds, too long for the reader of a socket and for the tasks that write
// replies. One goroutine at a time does it, while there is something to do.

package rediscompat

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"redlockd/commands/access"
)

const (
	// probesPerSecond bounds what scripts that are sent again and again may cost;
	// as many may come at once.
	probesPerSecond = 50
	// maxProbes bounds the jobs that wait.
	maxProbes = 64
)

// prober runs jobs one after another. The zero value is ready.
type prober struct {
	now func() time.Time // nil: time.Now

	mu      sync.Mutex
	spent   access.Bucket
	jobs    []func()
	running bool
}

// submit queues a job, or returns why it does not.
func (p *prober) submit(job func()) error {
	now := time.Now
	if p.now != nil {
		now = p.now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.jobs) >= maxProbes || !p.spent.Take(now(), probesPerSecond) {
		return fmt.Errorf("unknown scripts: %d a second are looked at, %d may wait; nothing was done, try later", probesPerSecond, maxProbes)
	}
	p.jobs = append(p.jobs, job)
	if !p.running {
		p.running = true
		go p.work()
	}
	return nil
}

// work ends when no job is left; the calls that wait for its jobs keep the
// daemon from stopping before.
func (p *prober) work() {
	for {
		p.mu.Lock()
		if len(p.jobs) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		job := p.jobs[0]
		p.jobs = p.jobs[1:]
		p.mu.Unlock()
		runRecovered(job)
	}
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
