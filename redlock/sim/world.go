package sim

// One world: its events in virtual time, its course from the first fault to the
// rest at the end, and the form of a violation.

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/sim/fake"
	"redlockd/redlock/slots"
)

// World is one run. Everything in it happens in Play, one event after another.
type World struct {
	Scenario *Scenario
	Seed     uint64

	random           *rand.Rand
	now              time.Duration
	events           []event
	serial           uint64
	steps            int64
	lab              *Lab
	servers          []*server
	list             []*server // the masters that the next daemon process is configured with
	changed          int       // which of the scenario's lists they are
	operators        []*daemon // that change the masters
	movers           []*mover
	moved            slots.Ranges    // by any command so far
	moves            int64           // that succeeded
	files            [2]slots.Ranges // the slots of both groups in the newest file
	daemons          []*daemon
	clients          []client
	observer         observer
	calm             bool // no more faults
	bootstrapped     bool
	forgets          bool          // a daemon died or a memory was rolled back: leftovers are legal
	quarantinedUntil time.Duration // when the next memory may be lost
	ripples          time.Duration // when clocks may be moved by little steps again
	stepped          time.Duration // when all daemons had seen the last little step of a clock
	ended            bool

	current *task // whose coroutine runs
	idle    []*task

	executions int64 // commands of operations, and seals
	commands   int64 // all commands on all masters
	violation  *WorldViolation
	trace      *trace
}

// observer sees what happens; it is the checker.
type observer interface {
	// begins is called before the clients and the faults begin.
	begins()
	// executed is called when a master has executed a command of a flight, and again when
	// its daemon has received the reply.
	executed(f *flight, words []string, r pool.Reply, received bool)
	// touched is called when a key has changed or expired on a master.
	touched(key string)
	// rests is called when faults and clients have ended.
	rests()
}

// client uses a daemon, as a state machine: act does the next thing and schedules
// itself again.
type client interface {
	base() *baseClient
	act()
	busy() bool     // waits for an answer
	lost(d *daemon) // a daemon died: what was sent to it gets no answer
}

// WorldViolation is a promise that was not kept.
type WorldViolation struct {
	Scenario string
	Seed     uint64
	Step     int64 // events since the beginning
	At       time.Duration
	Rule     string
	Key      string
	Why      string
	Events   []string // the last ones that concern the key
}

func (v *WorldViolation) Error() string {
	text := fmt.Sprintf("%s on %q: %s\n\tscenario %s, seed %d, step %d, at %v; play it again: SIM_SCENARIO=%s SIM_SEED=%d make sim",
		v.Rule, v.Key, v.Why, v.Scenario, v.Seed, v.Step, v.At, v.Scenario, v.Seed)
	for _, line := range v.Events {
		text += "\n\t" + line
	}
	return text
}

// event is something that will happen. One that belongs to a daemon waits while
// the daemon is stopped, and is lost with it.
type event struct {
	at     time.Duration
	serial uint64
	owner  *daemon
	do     func()
}

func (w *World) violate(rule, key, why string) {
	if w.violation != nil {
		return
	}
	w.violation = &WorldViolation{
		Scenario: w.Scenario.Name, Seed: w.Seed, Step: w.steps, At: w.now,
		Rule: rule, Key: key, Why: why, Events: w.trace.about(key),
	}
}

// after schedules an event for a daemon, or for none (nil).
func (w *World) after(d time.Duration, owner *daemon, do func()) {
	w.serial++
	e := event{at: w.now + max(0, d), serial: w.serial, owner: owner, do: do}
	w.events = append(w.events, e)
	for i := len(w.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !w.events[i].before(&w.events[parent]) {
			break
		}
		w.events[i], w.events[parent] = w.events[parent], w.events[i]
		i = parent
	}
}

func (e *event) before(o *event) bool {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.serial, o.serial)) < 0
}

// next takes the earliest event.
func (w *World) next() event {
	first := w.events[0]
	n := len(w.events) - 1
	w.events[0] = w.events[n]
	w.events[n] = event{}
	w.events = w.events[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if w.events[child].before(&w.events[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		w.events[i], w.events[least] = w.events[least], w.events[i]
		i = least
	}
}

// maxSteps is far above what any scenario takes.
const maxSteps = 5_000_000

// run lets the world go on until a moment, or until something is wrong.
func (w *World) run(until time.Duration) {
	for len(w.events) > 0 && w.violation == nil && w.events[0].at <= until {
		e := w.next()
		w.now = max(w.now, e.at)
		if d := e.owner; d != nil {
			if d.dead {
				continue
			}
			if d.paused > w.now {
				w.after(d.paused-w.now, d, e.do)
				continue
			}
		}
		if w.steps++; w.steps > maxSteps {
			w.violate("liveness", "", "so many events happen that the world makes no progress")
			return
		}
		e.do()
	}
	w.now = max(w.now, until)
}

// chance is true once in so many times; 0 = never.
func (w *World) chance(once int) bool { return once > 0 && w.random.IntN(once) == 0 }

// between draws a duration from [low, high].
func (w *World) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(w.random.Int64N(int64(high-low)+1))
}

// newWorld has no observer yet.
func newWorld(s *Scenario, seed uint64, lab *Lab) *World {
	w := &World{Scenario: s, Seed: seed, random: rand.New(rand.NewPCG(seed, 0x5eed)), lab: lab, files: firstFiles()}
	w.trace = &trace{world: w, out: io.Discard}
	servers := s.Masters
	if s.Groups {
		servers *= 2
	}
	for _, list := range s.Lists {
		for _, name := range list {
			servers = max(servers, int(name-'a')+1)
		}
	}
	for i := range servers {
		m := newServer(w, string(rune('a'+i)))
		m.offset = int64(w.between(-s.ClockSpread, s.ClockSpread) / time.Microsecond)
		m.home = m.offset
		m.ppm = int64(w.random.IntN(2*s.RatePPM+1) - s.RatePPM)
		m.start(fake.Memory{})
		w.servers = append(w.servers, m)
	}
	w.list = w.servers[:s.Masters]
	for i := range s.Daemons {
		w.daemons = append(w.daemons, newDaemon(w, i))
	}
	return w
}

// Play runs the world to its end and returns what was wrong, nil for nothing.
func (w *World) Play() (v *WorldViolation) {
	defer func() {
		if cause := recover(); cause != nil {
			w.violate("panics", "", fmt.Sprint(cause))
		}
		v = w.violation
	}()
	s := w.Scenario
	if !w.begin() {
		return w.violation
	}
	for _, people := range s.Clients {
		for range people.Number {
			c := people.New()
			*c.base() = baseClient{world: w, index: len(w.clients), next: c.act}
			w.clients = append(w.clients, c)
		}
	}
	for _, c := range w.clients {
		w.after(w.between(0, 5*time.Millisecond), nil, c.act)
	}
	w.observer.begins()
	for _, f := range s.Faults {
		f.start(w)
	}
	w.run(w.now + s.Length)
	if w.violation == nil {
		w.settle()
	}
	w.finish()
	return w.violation
}

// begin bootstraps the group, unless it is to grow old, and starts the daemons.
func (w *World) begin() bool {
	w.calm = true // a bootstrap that fails is repeated, which is not what is played here
	if !w.Scenario.NotBootstrapped {
		first := w.daemons[0]
		w.spawn(first, first.bootstrap)
		w.run(w.now + time.Second + 100*w.Scenario.farthest())
	}
	w.bootstrapped, w.calm = true, false
	for _, d := range w.daemons {
		d.boot()
	}
	w.run(w.now + 2*time.Second + 100*w.Scenario.farthest())
	if w.Scenario.NotBootstrapped {
		w.run(w.now + w.Scenario.age())
	}
	for _, d := range w.daemons {
		if d.engine == nil {
			w.violate("liveness", "", fmt.Sprintf("daemon %d did not start", d.index))
			return false
		}
	}
	return true
}

// settleTimeout bounds the rest at the end of a world.
const settleTimeout = 20 * time.Second

// settle ends all faults and all clients, and checks what is left.
func (w *World) settle() {
	w.calm = true
	for _, s := range w.servers {
		s.heal()
	}
	for _, d := range w.daemons {
		d.heal()
	}
	w.run(w.now + time.Second)
	if settle := w.Scenario.Settle; settle != nil {
		settle(w)
	}
	if w.Scenario.Alias || w.Scenario.OtherMap || len(w.Scenario.Lists) > 0 {
		return // a daemon never gets to one of its masters
	}
	for limit := w.now + settleTimeout; w.now < limit && w.violation == nil; {
		if w.unrest() == "" {
			w.run(w.now + 50*time.Millisecond + 4*w.Scenario.farthest()) // what was sent last arrives
			w.observer.rests()
			return
		}
		w.run(w.now + 20*time.Millisecond)
	}
	if w.violation == nil {
		w.violate("liveness", "", "the world does not come to rest after all faults have ended: "+w.unrest())
	}
}

// unrest is what a client or a daemon has left to do; "" = nothing.
func (w *World) unrest() string {
	for _, c := range w.clients {
		if c.busy() {
			return fmt.Sprintf("a client waits: %v", c)
		}
	}
	for _, d := range w.daemons {
		if d.dead {
			continue
		}
		if d.engine == nil {
			return fmt.Sprintf("daemon %d has not started", d.index)
		}
		masters := d.locker.Masters(0)
		if d.second != nil {
			masters = append(masters, d.second.Masters(0)...)
		}
		for _, m := range masters {
			if m.PendingReleases > 0 || m.Queued > 0 || m.State != "voting" && m.State != "quarantined" {
				return fmt.Sprintf("daemon %d: master %s is %s (%s), pending releases %d, queued %d", d.index, m.Name, m.State, m.Detail, m.PendingReleases, m.Queued)
			}
		}
		if n := d.engine.Waiters() + d.engine.Holds(); n > 0 {
			return fmt.Sprintf("daemon %d keeps %d waiters and %d leases to renew, of no client", d.index, d.engine.Waiters(), d.engine.Holds())
		}
		if n := d.pool.Busy(); n > 0 && slices.ContainsFunc(w.events, func(e event) bool { return e.owner == d }) {
			continue // the heartbeat may be under way
		}
	}
	return ""
}

// finish lets every coroutine end.
func (w *World) finish() {
	w.ended = true
	for _, d := range w.daemons {
		d.kill()
	}
	for _, m := range w.movers {
		m.process.kill()
	}
	for _, t := range w.idle {
		t.stop()
	}
}

func (w *World) anyServer() *server { return w.servers[w.random.IntN(len(w.servers))] }

// overAge: a fault that quarantines a master is followed by another only when the
// group has had time to recover. With every master quarantined nothing is tested.
func (w *World) overAge() bool {
	if w.now < w.quarantinedUntil {
		return false
	}
	w.quarantinedUntil = w.now + w.between(w.Scenario.age()/3, w.Scenario.age()*5/4)
	return true
}

// anyTTL is a lease time that the scenario allows.
func (w *World) anyTTL() time.Duration {
	return w.between(w.Scenario.MinTTL, w.Scenario.MaxTTL).Truncate(time.Millisecond)
}

// anyKey is one of the keys that all clients use.
func (w *World) anyKey() string { return fmt.Sprint("k", w.random.IntN(w.Scenario.Keys)) }
