// Relay is the network between a daemon and its master; every fault of it is a method.

package faulty

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Direction is one way through a relay.
type Direction int

const (
	ToMaster Direction = iota
	ToClient
	directions
)

// Counts has what has passed a relay since it was made. The arrays are indexed by
// Direction.
type Counts struct {
	Accepted int64             // connections, refused ones included
	Open     int               // of them now
	Bytes    [directions]int64 // forwarded
	Writes   [directions]int64 // in which they were forwarded
}

// connMode names the treatment of a new connection.
type connMode int

const (
	modeRelay connMode = iota
	modeHangUp
	modeSilent
)

// flow is the state of one direction, the same for all connections.
type flow struct {
	quota  int64         // bytes that may still pass; unlimited if negative
	delay  time.Duration // from a byte's arrival to its departure
	single bool          // one byte a write
}

const unlimited = -1

// Relay is a TCP relay in front of one master. All methods may be called at any
// time from any goroutine; those that take directions mean both when none is
// given. Faults that hold bytes hold those of present and future connections.
type Relay struct {
	port   *reservation
	target string
	wg     sync.WaitGroup // every goroutine of the relay

	mu      sync.Mutex
	ln      net.Listener // nil while the relay refuses connections
	mode    connMode
	flows   [directions]flow
	links   map[*relayLink]struct{}
	counts  Counts
	changed chan struct{} // closed and replaced whenever a flow changes
	closed  bool
}

// NewRelay starts a relay to target (host:port) on a loopback port of its own,
// without faults. It panics if no port is to be had. The caller closes it.
func NewRelay(target string) *Relay {
	port, err := reservePort()
	if err != nil {
		panic("faulty: relay: " + err.Error())
	}
	ln, err := port.listen()
	if err != nil {
		panic("faulty: relay: " + err.Error())
	}
	r := &Relay{
		port: port, target: target, ln: ln,
		links: make(map[*relayLink]struct{}), changed: make(chan struct{}),
	}
	for d := range r.flows {
		r.flows[d].quota = unlimited
	}
	r.wg.Go(func() { r.accept(ln) })
	return r
}

// Addr returns the address at which clients find the relay; it never changes.
func (r *Relay) Addr() string { return r.port.addr() }

// Pause holds all bytes: nothing is lost, nothing arrives.
func (r *Relay) Pause(ways ...Direction) { r.StallAfter(0, ways...) }

// StallAfter lets k more bytes pass, over all connections together, and holds
// the rest.
func (r *Relay) StallAfter(k int64, ways ...Direction) {
	r.change(ways, func(f *flow) { f.quota = max(k, 0) })
}

// Resume lets everything pass again, beginning with what was held.
func (r *Relay) Resume(ways ...Direction) {
	r.change(ways, func(f *flow) { f.quota = unlimited })
}

// Delay makes every byte leave d after it arrived; both ways together delay a
// round trip by 2d. Zero ends it.
func (r *Relay) Delay(d time.Duration, ways ...Direction) {
	r.change(ways, func(f *flow) { f.delay = d })
}

// ByteByByte writes every byte by itself, or not any more. The receiver's
// kernel may still put some of them together.
func (r *Relay) ByteByByte(on bool, ways ...Direction) {
	r.change(ways, func(f *flow) { f.single = on })
}

func (r *Relay) change(ways []Direction, apply func(*flow)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(ways) == 0 {
		ways = []Direction{ToMaster, ToClient}
	}
	for _, d := range ways {
		apply(&r.flows[d])
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Cut resets all present connections on both sides. What was held is lost.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.resetLocked()
	}
}

// Mute picks one of the present connections, by its age; nothing more passes it in that
// direction until it ends. The other direction and the other connections stay as they are.
func (r *Relay) Mute(way Direction, pick func(n int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) == 0 {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(r.links), func(a, b *relayLink) int { return cmp.Compare(a.number, b.number) })
	byAge[pick(len(byAge))].muted[way] = true
}

func (r *Relay) isMuted(l *relayLink) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return l.muted != [directions]bool{}
}

// Refuse makes the kernel refuse new connections, as on a machine whose server
// has died. Present ones stay: see Cut.
func (r *Relay) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ln != nil {
		r.ln.Close()
		r.ln = nil
	}
}

// HangUp accepts new connections and closes them at once.
func (r *Relay) HangUp() { r.setMode(modeHangUp) }

// HalfOpen accepts new connections, then never reads from or answers them.
func (r *Relay) HalfOpen() { r.setMode(modeSilent) }

// Accept relays new connections again. Those that met HalfOpen stay silent.
func (r *Relay) Accept() { r.setMode(modeRelay) }

func (r *Relay) setMode(d connMode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = d
	if r.ln != nil || r.closed {
		return
	}
	ln, err := r.port.listen()
	if err != nil {
		panic(fmt.Sprintf("faulty: relay: its port was taken while it refused connections: %v", err))
	}
	r.ln = ln
	r.wg.Go(func() { r.accept(ln) })
}

// Counts returns the counters.
func (r *Relay) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	c.Open = len(r.links)
	return c
}

// Close refuses and cuts everything and returns when all goroutines have ended.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Refuse()
	r.Cut()
	r.wg.Wait()
	r.port.release()
}

// accept takes the connections of one listener until it is closed.
func (r *Relay) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		r.handle(ln, conn.(*net.TCPConn))
	}
}

func (r *Relay) handle(ln net.Listener, client *net.TCPConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Accepted++
	refused := r.ln != ln // Refuse came between the kernel's accept and here
	if refused || r.mode == modeHangUp {
		client.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &relayLink{relay: r, client: client, cancel: cancel, cut: ctx.Done(), number: r.counts.Accepted}
	r.links[l] = struct{}{}
	if r.mode == modeRelay {
		r.wg.Go(func() { l.run(ctx) })
	}
}

// grant returns how many of the size bytes that arrived at a time may leave now.
// If none, it returns when to call again: at due, if not zero, or after a change.
func (r *Relay) grant(l *relayLink, d Direction, arrived time.Time, size int) (n int, due time.Time, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.flows[d]
	if f.quota == 0 || l.muted[d] {
		return 0, time.Time{}, r.changed
	}
	if due = arrived.Add(f.delay); time.Now().Before(due) {
		return 0, due, r.changed
	}
	n = size
	if f.single {
		n = 1
	}
	if f.quota > 0 {
		n = int(min(int64(n), f.quota))
		f.quota -= int64(n)
	}
	r.counts.Bytes[d] += int64(n)
	r.counts.Writes[d]++
	return n, time.Time{}, nil
}
