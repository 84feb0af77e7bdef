package proxy

// sharequeue.go divides the processors between connections that send much at once and all
// others. A connection starts one share of its commands in each period right away. For each
// further share it waits in the queue here, and it remains heavy for a while: then its first
// shares wait, too. The queue serves users and addresses in turn. So a client that floods
// the daemon delays others by shares, not by all that it sends; many connections of one
// client count as one; and the flooding clients together leave half of the processors to
// the others. A client that sends less than a share in a period never waits here.

import (
	"runtime"
	"sync"
	"time"
)

const (
	// shareCommands is more than clients have in flight that pipeline the calls of many callers.
	shareCommands = 64
	// shareBytes of commands and replies makes shares of long ones alike: DMLOCK of 64 keys
	// has about 1 kB, the reply of COMMAND DOCS more than 64 kB.
	shareBytes = 16 << 10
	// sharePeriod allows a connection 12,800 commands a second without a wait.
	sharePeriod = 5 * time.Millisecond
	// heavyTime is how long a connection remains heavy after its last further share.
	heavyTime = time.Second
)

// shareQueue is the queue for further shares.
type shareQueue struct {
	period time.Duration

	mu     sync.Mutex
	free   int // further shares that may be started now
	owners []*shareOwner
	byName map[string]*shareOwner
}

// shareOwner is a user at an address, with the shares that wait for it.
type shareOwner struct {
	name  string
	turns []chan struct{}
}

// open sets how many connections may start further shares at the same time.
func (r *shareQueue) open() {
	r.period = sharePeriod
	r.free = max(1, runtime.GOMAXPROCS(0)/2)
	r.byName = map[string]*shareOwner{}
}

// enter returns when a connection of the owner may start a share. The caller calls leave
// afterwards.
func (r *shareQueue) enter(owner string) {
	r.mu.Lock()
	if r.free > 0 {
		r.free--
		r.mu.Unlock()
		return
	}
	o := r.byName[owner]
	if o == nil {
		o = &shareOwner{name: owner}
		r.byName[owner] = o
		r.owners = append(r.owners, o)
	}
	turn := make(chan struct{})
	o.turns = append(o.turns, turn)
	r.mu.Unlock()
	<-turn
}

func (r *shareQueue) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.owners) == 0 {
		r.owners = nil
		r.free++
		return
	}
	next := r.owners[0]
	r.owners = r.owners[1:]
	close(next.turns[0])
	if next.turns = next.turns[1:]; len(next.turns) > 0 {
		r.owners = append(r.owners, next)
	} else {
		delete(r.byName, next.name)
	}
}
