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
func (s *shareQueue) open() {
	s.period, s.began = sharePeriod, time.Now()
	s.free = max(1, runtime.GOMAXPROCS(0)/2)
	s.byName = map[string]*shareOwner{}
	s.lastLight.Store(-int64(lightTime))
}

// noteLight is called when a connection that is not heavy is at work.
func (s *shareQueue) noteLight(now time.Time) {
	at := int64(now.Sub(s.began))
	if at-s.lastLight.Load() > int64(lightTime/8) { // rarely: the variable is shared
		s.lastLight.Store(at)
	}
}

// join returns the owner of one more heavy connection. The caller calls part afterwards.
func (s *shareQueue) join(name string) *shareOwner {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byName[name]
	if o == nil {
		o = &shareOwner{name: name}
		s.byName[name] = o
	}
	o.connections++
	return o
}

func (s *shareQueue) part(o *shareOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.connections--; o.connections == 0 {
		delete(s.byName, o.name)
	}
}

// enter returns when a connection of the owner may start a share. The caller calls leave
// afterwards.
func (s *shareQueue) enter(o *shareOwner) {
	s.mu.Lock()
	now := time.Since(s.began)
	if len(s.owners) == 0 && s.free > 0 && s.mayStartLocked(o, now) {
		s.startLocked(o)
		s.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if o.waiting = append(o.waiting, turn); len(o.waiting) == 1 {
		s.owners = append(s.owners, o)
	}
	s.nextLocked(now)
	s.mu.Unlock()
	<-turn
}

// leave ends a turn that took so long, and started commands of this weight, of which this
// part is in flight.
func (s *shareQueue) leave(o *shareOwner, took time.Duration, started, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(o, took, started, inFlight)
}

func (s *shareQueue) leaveLocked(o *shareOwner, took time.Duration, started, inFlight int) {
	o.running--
	o.inFlight += inFlight
	now := time.Since(s.began)
	if rest := s.restLocked(now, took, started, started-inFlight); rest > 0 {
		time.AfterFunc(rest, s.rested)
		return
	}
	s.free++
	s.nextLocked(now)
}

// restLocked returns how long the queue rests after a turn that took so long, and started
// commands of this weight, of which this part was answered at once. What is less than minRest
// is owed.
func (s *shareQueue) restLocked(now, took time.Duration, started, atOnce int) time.Duration {
	if !s.besideLight(now) {
		s.owed = 0
		return 0
	}
	work := took * time.Duration(atOnce) / time.Duration(max(started, 1))
	s.owed += restFactor * (commandCost*time.Duration(atOnce) + work)
	if s.owed < minRest {
		return 0
	}
	rest := min(s.owed, maxRest)
	s.owed = 0
	return rest
}

func (s *shareQueue) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.nextLocked(time.Since(s.began))
}

// answered takes a command out of those in flight.
func (s *shareQueue) answered(o *shareOwner, window int64, weight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if window != o.window {
		return
	}
	o.inFlight -= weight
	if len(o.waiting) > 0 && s.free > 0 {
		s.nextLocked(time.Since(s.began))
	}
}

// nextLocked starts the turns that may start, of owners in turn.
func (s *shareQueue) nextLocked(now time.Duration) {
	for i := 0; i < len(s.owners) && s.free > 0; {
		o := s.owners[i]
		if !s.mayStartLocked(o, now) {
			i++
			continue
		}
		s.startLocked(o)
		close(o.waiting[0])
		o.waiting = o.waiting[1:]
		if s.owners = slices.Delete(s.owners, i, i+1); len(o.waiting) > 0 {
			s.owners = append(s.owners, o)
		}
	}
	if len(s.owners) > 0 && s.free > 0 { // all have too much in flight
		s.retrySoonLocked()
	}
}

func (s *shareQueue) retrySoonLocked() {
	if s.retry != nil {
		s.retry.Reset(s.period)
		return
	}
	s.retry = time.AfterFunc(s.period, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.nextLocked(time.Since(s.began))
	})
}

// mayStartLocked reports whether the owner has little enough in flight.
func (s *shareQueue) mayStartLocked(o *shareOwner, now time.Duration) bool {
	if o.running == 0 && (o.window == 0 || now-o.windowBegan >= s.period) {
		s.windows++
		o.window, o.windowBegan, o.inFlight = s.windows, now, 0
	}
	if s.besideLight(now) {
		return o.running == 0 && o.inFlight < maxInFlightBesideLight
	}
	return o.inFlight < maxInFlight
}

func (s *shareQueue) startLocked(o *shareOwner) {
	s.free--
	o.running++
}

func (s *shareQueue) besideLight(now time.Duration) bool {
	return now-time.Duration(s.lastLight.Load()) < lightTime
}
