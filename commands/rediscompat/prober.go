// prober evaluates scripts that were not seen before. That takes up to some
// milliseconds, too long for the reader of a socket and for the tasks that write
// replies. One goroutine at a time does it, and users take turns.

package rediscompat

import (
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// probesPerSecond bounds what new scripts of one user may cost; as many may come at once.
	probesPerSecond = 50
	// maxProbes bounds the jobs of a user that wait.
	maxProbes = 64
	// maxProbers bounds the users that are remembered.
	maxProbers = 1024
)

// prober runs jobs one after another. The zero value is ready.
type prober struct {
	running sync.Mutex // of the job that runs

	mu    sync.Mutex
	users map[string]*userProbes
}

// userProbes are the jobs of one user, of which one at a time waits for its turn among the users.
type userProbes struct {
	limiter *rate.Limiter
	open    int // jobs that run or wait
	turn    sync.Mutex
}

// submit starts a job, or returns why it does not. The calls that wait for the jobs keep
// the daemon from stopping before.
func (p *prober) submit(user string, job func()) error {
	u := p.enter(user)
	if u == nil {
		return fmt.Errorf("new scripts: %d a second of a user are looked at, %d may wait; nothing was done, try later", probesPerSecond, maxProbes)
	}
	go func() {
		defer p.leave(u)
		u.turn.Lock()
		defer u.turn.Unlock()
		p.running.Lock()
		defer p.running.Unlock()
		runRecovered(job)
	}()
	return nil
}

func (p *prober) enter(user string) *userProbes {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[user]
	if u == nil {
		if p.users == nil || len(p.users) >= maxProbers {
			p.users = make(map[string]*userProbes)
		}
		u = &userProbes{limiter: rate.NewLimiter(probesPerSecond, probesPerSecond)}
		p.users[user] = u
	}
	if u.open > maxProbes || !u.limiter.Allow() {
		return nil
	}
	u.open++
	return u
}

func (p *prober) leave(u *userProbes) {
	p.mu.Lock()
	u.open--
	p.mu.Unlock()
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
