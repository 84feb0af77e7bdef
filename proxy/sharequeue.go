package proxy

// sharequeue.go divides the processors between connections that send much at once and all
// others. A connection starts one share of its commands right away. For each further
// share it waits in the queue here. So a client that floods the daemon delays others by
// shares, not by all that it sends, and the flooding clients together leave half of the
// processors to the others. A client that sends less than a share at once never waits here.

import (
	"runtime"
	"sync"
)

const (
	// shareCommands is more than clients have in flight that pipeline the calls of many callers.
	shareCommands = 64
	// shareInput makes shares of long commands alike: DMLOCK of 64 keys has about 1 kB.
	shareInput = 16 << 10
)

// shareQueue is the queue for further shares.
type shareQueue struct {
	mu    sync.Mutex
	free  int // further shares that may be started now
	queue []chan struct{}
}

// open sets how many connections may start further shares at the same time.
func (r *shareQueue) open() { r.free = max(1, runtime.GOMAXPROCS(0)/2) }

// enter returns when the caller may start a share. The caller calls leave afterwards.
func (r *shareQueue) enter() {
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

func (r *shareQueue) leave() {
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
