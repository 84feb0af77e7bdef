package chaos

// claims_test.go: the processes and links that a fault has struck. A fault has what it
// needs for itself while it lasts, so that two faults never fight over one process, and so that
// what the product assumes stays true.

import (
	"math/rand/v2"
	"sync"
	"time"

	"redlockd/pool/faulty"
)

// scope is what a fault strikes, and with it which assumption it must respect.
type scope int

const (
	// onLink strikes the way between one daemon and one master. Nothing is
	// assumed of the network.
	onLink scope = iota
	// onDaemon strikes a daemon. Nothing is assumed of daemons, but one of them
	// stays alive, so that the clients have a daemon to use.
	onDaemon
	// onMaster stops or disturbs a master that keeps its memory. Nothing is
	// assumed but that memory.
	onMaster
	// onMemory takes a master's memory. Locks survive any loss of memory, since a
	// master that forgot does not vote until it is older than the longest lease;
	// counters survive the loss of a minority's, so no more than a minority of a group
	// is struck until those have aged and remember the counters again.
	onMemory
	// onIncarnation invalidates a master's incarnation as soon as a daemon observes
	// it: its clock steps, or its policy would evict. Daemons observe it later than it
	// happens, or never, so it ends when each has decided what it saw. Assumed is
	// that a step above the master timeout is observed before it is undone: so
	// no other fault stops this master, and it ends only when it was seen. A
	// majority that steps alike would look like the daemon's own clock.
	onIncarnation
	// onAll ends every process, which no other fault may strike meanwhile. Assumed is that
	// masters have on disk what they have answered.
	onAll
)

// victim is what one fault was given.
type victim struct {
	stand  *stand
	scope  scope
	daemon int
	master int
	step   time.Duration // of its clock
	random *rand.Rand
}

func (v *victim) server() *faulty.Server { return v.stand.masters[v.master] }
func (v *victim) struck() *daemon        { return v.stand.daemons[v.daemon] }
func (v *victim) link() *faulty.Relay    { return v.struck().links[v.master] }

// claims are the victims of the faults under way.
type claims struct {
	stand *stand

	mu       sync.Mutex
	links    map[[2]int]bool
	daemons  map[int]bool
	masters  map[int]bool
	memories map[int]bool
	all      bool
}

func newClaims(s *stand) *claims {
	return &claims{stand: s, links: map[[2]int]bool{}, daemons: map[int]bool{}, masters: map[int]bool{}, memories: map[int]bool{}}
}

// claim draws a victim for the scope; false if what was drawn is taken.
func (c *claims) claim(s scope, random *rand.Rand) (*victim, bool) {
	masters := len(c.stand.masters)
	if c.stand.plan.spared {
		masters = c.stand.minority() // always the same ones
	}
	v := &victim{
		stand: c.stand, scope: s, daemon: random.IntN(len(c.stand.daemons)), master: random.IntN(masters),
		random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	link := [2]int{v.daemon, v.master}
	if c.all {
		return nil, false
	}
	switch s {
	case onAll:
		if len(c.links)+len(c.daemons)+len(c.masters)+len(c.memories) > 0 {
			return nil, false
		}
		c.all = true
	case onLink:
		if c.links[link] {
			return nil, false
		}
		c.links[link] = true
	case onDaemon:
		if len(c.daemons) > 0 {
			return nil, false
		}
		c.daemons[v.daemon] = true
	case onMaster:
		if c.masters[v.master] {
			return nil, false
		}
		c.masters[v.master] = true
	case onMemory, onIncarnation:
		if c.masters[v.master] || c.memories[v.master] || c.forgotten(c.stand.groupOfMaster(v.master)) >= c.stand.minority() {
			return nil, false
		}
		c.masters[v.master], c.memories[v.master] = true, true
	}
	return v, true
}

// forgotten is how many masters of a group have lost their memory.
func (c *claims) forgotten(group int) (n int) {
	for master := range c.memories {
		if c.stand.groupOfMaster(master) == group {
			n++
		}
	}
	return n
}

// healed gives back what may be struck again at once.
func (c *claims) healed(v *victim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v.scope {
	case onAll:
		c.all = false
	case onLink:
		delete(c.links, [2]int{v.daemon, v.master})
	case onDaemon:
		delete(c.daemons, v.daemon)
	default:
		delete(c.masters, v.master)
	}
}

// recovered gives back what had to come to itself.
func (c *claims) recovered(v *victim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.scope == onMemory || v.scope == onIncarnation {
		delete(c.memories, v.master)
	}
}
