package proxy

// rounds.go shares the processors between connections that send much at once and all
// others. Of what it has read, a connection starts one share right away. For each further
// share it takes a place in the queue here, behind those that came before. So a client
// that floods the daemon keeps others waiting for shares, not for all that it sends, and
// the flooding clients together leave half of the processors to the others. A client that
// sends less than a share at once never comes here.

import (
	"runtime"
	"sync"
)

const (
	// shareCommands is more than clients have in flight that pipeline what many callers do.
	shareCommands = 64
	// shareInput makes shares of long commands alike: DMLOCK of 64 keys has about 1 kB.
	shareInput = 16 << 10
)

// rounds is the queue for further shares.
type rounds struct {
	mu    sync.Mutex
	free  int // shares that may be started beside those under way
	queue []chan struct{}
}

// open sets how many connections may start further shares at the same time.
func (r *rounds) open() { r.free = max(1, runtime.GOMAXPROCS(0)/2) }

// wait returns when the turn is the caller's, which passes it on.
func (r *rounds) wait() {
	r.mu.Lock()
	if r.free > 0 {
		r.free--
		r.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	r.queue = append(r.queue, turn)
	r.mu.Unlock()
	<-turn
}

func (r *rounds) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue = nil
		r.free++
		return
	}
	close(r.queue[0])
	r.queue = r.queue[1:]
}
