package proxy

// sharequeue.go divides the processors and the masters between connections that send much at
// once and all others. A connection starts one share of its commands in each period right
// away. For each further share it waits in the queue here, and it remains heavy for a while:
// then its first shares wait, too. The queue serves users and addresses in turn. So a client
// that floods the daemon delays others by shares, not by all that it sends; many connections
// of one client count as one; and the flooding clients together leave half of the processors
// to the others. A client that sends less than a share in a period never waits here.
//
// Operations that have been started wait for the masters in the queues of the lanes, all of
// them in one order. So the queue here also bounds what heavy connections have in flight, and
// more tightly while other connections are at work. What is answered at once, such as PING,
// needs the processors instead, and so do the kernel and the other end of the connection. So
// the queue rests after such turns for some times as long as they took.

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shareCommands is more than clients have in flight that pipeline the calls of many callers.
	shareCommands = 64
	// shareBytes of commands and replies makes shares of long ones alike: the reply of
	// COMMAND DOCS has more than 64 kB.
	shareBytes = 16 << 10
	// sharePeriod allows a connection 12,800 commands a second without a wait.
	sharePeriod = 5 * time.Millisecond
	// heavyTime is how long a connection remains heavy after its last further share.
	heavyTime = time.Second

	// A turn begins while the owner has fewer commands in flight that were started in the
	// same period. Those that take longer, as a WAIT does, do not count any more.
	maxInFlight            = 1024 // some full flushes
	maxInFlightBesideLight = shareCommands / 2
	// lightCommands is how many commands a light connection has in its reply queue. A client
	// of many callers slows down no other connection of its own.
	lightCommands = shareCommands / 4
	// lightTime is how long a command of a light connection counts as work.
	lightTime = 100 * time.Millisecond
	// commandCost is what a command takes beside its handler: to read it and to write its reply.
	commandCost = time.Microsecond
	restFactor  = 3
	minRest     = time.Millisecond // timers are not finer
	maxRest     = lightTime        // a turn takes longer than its work when the machine is busy
)

type shareQueue struct {
	period    time.Duration
	began     time.Time
	lastLight atomic.Int64 // when a connection that is not heavy was at work, since began

	mu      sync.Mutex
	free    int           // further shares that may be started now
	owed    time.Duration // of rest
	windows int64         // number of the newest window
	owners  []*shareOwner // that wait
	byName  map[string]*shareOwner
	retry   *time.Timer
}

// shareOwner is a user at an address, with its turns.
type shareOwner struct {
	name        string
	connections int
	waiting     []chan struct{}
	running     int

	// A window is a period from the first turn in it. It does not end within a turn.
	window      int64
	windowBegan time.Duration
	inFlight    int // weight of the commands that were started in this window
}

// open sets how many connections may start further shares at the same time.
func (r *shareQueue) open() {
	r.period, r.began = sharePeriod, time.Now()
	r.free = max(1, runtime.GOMAXPROCS(0)/2)
	r.byName = map[string]*shareOwner{}
	r.lastLight.Store(-int64(lightTime))
}

// noteLight is called when a connection that is not heavy is at work.
func (r *shareQueue) noteLight(now time.Time) {
	at := int64(now.Sub(r.began))
	if at-r.lastLight.Load() > int64(lightTime/8) { // rarely: the variable is shared
		r.lastLight.Store(at)
	}
}

// join returns the owner of one more heavy connection. The caller calls part afterwards.
func (r *shareQueue) join(name string) *shareOwner {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.byName[name]
	if o == nil {
		o = &shareOwner{name: name}
		r.byName[name] = o
	}
	o.connections++
	return o
}

func (r *shareQueue) part(o *shareOwner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.connections--; o.connections == 0 {
		delete(r.byName, o.name)
	}
}

// enter returns when a connection of the owner may start a share. The caller calls leave
// afterwards.
func (r *shareQueue) enter(o *shareOwner) {
	r.mu.Lock()
	now := time.Since(r.began)
	if len(r.owners) == 0 && r.free > 0 && r.mayStartLocked(o, now) {
		r.startLocked(o)
		r.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if o.waiting = append(o.waiting, turn); len(o.waiting) == 1 {
		r.owners = append(r.owners, o)
	}
	r.nextLocked(now)
	r.mu.Unlock()
	<-turn
}

// leave ends a turn that took so long, and started commands of this weight, of which this
// part is in flight.
func (r *shareQueue) leave(o *shareOwner, took time.Duration, started, inFlight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveLocked(o, took, started, inFlight)
}

func (r *shareQueue) leaveLocked(o *shareOwner, took time.Duration, started, inFlight int) {
	o.running--
	o.inFlight += inFlight
	now := time.Since(r.began)
	if rest := r.restLocked(now, took, started, started-inFlight); rest > 0 {
		time.AfterFunc(rest, r.rested)
		return
	}
	r.free++
	r.nextLocked(now)
}

// restLocked returns how long the queue rests after a turn that took so long, and started
// commands of this weight, of which this part was answered at once. What is less than minRest
// is owed.
func (r *shareQueue) restLocked(now, took time.Duration, started, atOnce int) time.Duration {
	if !r.besideLight(now) {
		r.owed = 0
		return 0
	}
	work := took * time.Duration(atOnce) / time.Duration(max(started, 1))
	r.owed += restFactor * (commandCost*time.Duration(atOnce) + work)
	if r.owed < minRest {
		return 0
	}
	rest := min(r.owed, maxRest)
	r.owed = 0
	return rest
}

func (r *shareQueue) rested() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free++
	r.nextLocked(time.Since(r.began))
}

// answered takes a command out of those in flight.
func (r *shareQueue) answered(o *shareOwner, window int64, weight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if window != o.window {
		return
	}
	o.inFlight -= weight
	if len(o.waiting) > 0 && r.free > 0 {
		r.nextLocked(time.Since(r.began))
	}
}

// nextLocked starts the turns that may start, of owners in turn.
func (r *shareQueue) nextLocked(now time.Duration) {
	for i := 0; i < len(r.owners) && r.free > 0; {
		o := r.owners[i]
		if !r.mayStartLocked(o, now) {
			i++
			continue
		}
		r.startLocked(o)
		close(o.waiting[0])
		o.waiting = o.waiting[1:]
		if r.owners = slices.Delete(r.owners, i, i+1); len(o.waiting) > 0 {
			r.owners = append(r.owners, o)
		}
	}
	if len(r.owners) > 0 && r.free > 0 { // all have too much in flight
		r.retrySoonLocked()
	}
}

func (r *shareQueue) retrySoonLocked() {
	if r.retry != nil {
		r.retry.Reset(r.period)
		return
	}
	r.retry = time.AfterFunc(r.period, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.nextLocked(time.Since(r.began))
	})
}

// mayStartLocked reports whether the owner has little enough in flight.
func (r *shareQueue) mayStartLocked(o *shareOwner, now time.Duration) bool {
	if o.running == 0 && (o.window == 0 || now-o.windowBegan >= r.period) {
		r.windows++
		o.window, o.windowBegan, o.inFlight = r.windows, now, 0
	}
	if r.besideLight(now) {
		return o.running == 0 && o.inFlight < maxInFlightBesideLight
	}
	return o.inFlight < maxInFlight
}

func (r *shareQueue) startLocked(o *shareOwner) {
	r.free--
	o.running++
}

func (r *shareQueue) besideLight(now time.Duration) bool {
	return now-time.Duration(r.lastLight.Load()) < lightTime
}
