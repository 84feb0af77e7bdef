// Map is which group has each slot now, by the configurations that the groups' masters carry.
//
// A move changes two configurations, one after the other, see package setup: the slots leave one
// group, and are frozen until the other one has them. Of all groups that have a slot, or that it leaves,
// the configuration with the highest version of the map decides. A daemon may learn the two changes in
// any order, and late: the masters of a group that lost a slot admit no daemon with the former map.

package groups

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// maxGroups: a cursor has the number of its group above a group's own bits, and is a signed number for
// many clients.
const maxGroups = 1 << (63 - redlock.CursorBits)

// Map begins with the slots of a file, and follows the configurations of the masters.
type Map struct {
	names []string
	clock pool.Clock
	age   time.Duration // how long a move freezes its slots
	now   atomic.Pointer[table]
	// operations are the requests for each slot since the start.
	operations [slots.Count]atomic.Int64

	mu        sync.Mutex
	known     []knowledge // by group
	listeners []func()
}

// knowledge has what the latest configuration of a group says.
type knowledge struct {
	slots, leaving slots.Ranges
	to             string
	version, epoch int64
	leftAt         int64         // the version of the change that gave them up
	left           time.Duration // when this daemon learned that the slots leave
}

// table is one state of the map. It does not change.
type table struct {
	version  uint32
	slots    [slots.Count]place
	frozen   bool    // some of them are
	versions []int64 // of the map in each group's configuration
	moves    []move
}

// place has the group of a slot.
type place struct {
	group  uint8
	frozen bool   // it leaves the group, or no group is known to have it
	since  uint32 // the version of the table since which this is so, without a break
}

// move is slots that leave a group.
type move struct {
	group int
	slots slots.Ranges
	to    string
	until time.Duration // when they are over at the latest, unless the move has stopped
}

// NewMap is the map of a file, which gives each slot to one group. age is how long a move freezes its
// slots, see pool.Options.
func NewMap(owners []slots.Owner, age time.Duration, clock pool.Clock) (*Map, error) {
	if len(owners) > maxGroups {
		return nil, fmt.Errorf("%d groups, at most %d are allowed", len(owners), maxGroups)
	}
	begin, err := slots.NewTable(owners)
	if err != nil {
		return nil, err
	}
	m := &Map{clock: clock, age: age}
	first := &table{version: 1, versions: make([]int64, len(owners))}
	for slot, owner := range begin {
		first.slots[slot] = place{group: uint8(owner), since: 1}
	}
	for _, o := range owners {
		m.names = append(m.names, o.Name)
		m.known = append(m.known, knowledge{slots: o.Slots})
	}
	m.now.Store(first)
	return m, nil
}

// OnConfiguration is the hook of a group's pool, see pool.Options.
func (m *Map) OnConfiguration(group int) func(*pool.Configuration) {
	return func(c *pool.Configuration) { m.follow(group, c) }
}

// Ownership is the hook of a group's Locker, see redlock.Options.
func (m *Map) Ownership(group int) redlock.Ownership { return ownership{m, group} }

// OnChange registers a function that is called after each change of the map.
func (m *Map) OnChange(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, f)
}

// follow takes what a group's masters carry. The slots of a group change with the version alone.
func (m *Map) follow(group int, c *pool.Configuration) {
	own, err := slots.ParseOwned(c.Slots)
	var leaving slots.Ranges
	if err == nil && c.Leaving != "" {
		leaving, err = slots.Parse(c.Leaving)
	}
	if err != nil { // of another version of redlockd: its slots are served by nobody here
		own, leaving = nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &m.known[group]
	if c.MapVersion < k.version {
		return
	}
	gap := c.MapVersion > k.version && c.Epoch != k.epoch+1 // a change was missed
	same := c.MapVersion == k.version && c.To == k.to && slices.Equal(own, k.slots) && slices.Equal(leaving, k.leaving) && c.LeftAt == k.leftAt
	if k.epoch = c.Epoch; same {
		return
	}
	if !slices.Equal(leaving, k.leaving) || c.To != k.to || c.LeftAt != k.leftAt {
		k.left = m.clock.Now()
	}
	k.slots, k.leaving, k.to, k.leftAt, k.version = own, leaving, c.To, c.LeftAt, c.MapVersion
	m.now.Store(m.nextLocked(group, gap))
	for _, f := range m.listeners {
		m.clock.AfterFunc(0, f)
	}
}

// nextLocked is the table after a change of a group. With a gap, its slots may have been elsewhere.
func (m *Map) nextLocked(changed int, gap bool) *table {
	before := m.now.Load()
	next := &table{version: before.version + 1}
	type claim struct {
		version int64
		place   place
	}
	var best [slots.Count]claim
	for i, k := range m.known {
		next.versions = append(next.versions, k.version)
		if len(k.leaving) > 0 {
			next.moves = append(next.moves, move{i, k.leaving, k.to, k.left + m.age})
		}
		for _, set := range []struct {
			ranges  slots.Ranges
			version int64
			frozen  bool
		}{{k.slots, k.version, false}, {k.leaving, k.leftAt, true}} {
			for _, r := range set.ranges {
				for slot := r.First; slot <= r.Last; slot++ {
					switch b := &best[slot]; {
					case b.place.since == 0 || set.version > b.version:
						*b = claim{set.version, place{uint8(i), set.frozen, 1}}
					case set.version == b.version:
						b.place.frozen = true // two have it: neither may grant
					}
				}
			}
		}
	}
	for slot, b := range best {
		was, is := before.slots[slot], b.place
		if is.since == 0 { // no group has it, as far as is known
			is = place{group: was.group, frozen: true}
		}
		if is.since = next.version; is.group == was.group && is.frozen == was.frozen && !(gap && int(is.group) == changed) {
			is.since = was.since
		}
		next.slots[slot] = is
		next.frozen = next.frozen || is.frozen
	}
	return next
}

func (m *Map) at(key redlock.Key) place { return m.now.Load().slots[slots.Of(string(key))] }

// of is the group of a request for a key, which counts.
func (m *Map) of(key redlock.Key) int {
	slot := slots.Of(string(key))
	m.operations[slot].Add(1)
	return int(m.now.Load().slots[slot].group)
}

// frozen is the error if one of the keys is on its way to another group.
func (m *Map) frozen(key redlock.Key, more ...redlock.Key) error {
	t := m.now.Load()
	if !t.frozen {
		return nil
	}
	for i := -1; i < len(more); i++ {
		if i >= 0 {
			key = more[i]
		}
		if slot := slots.Of(string(key)); t.slots[slot].frozen {
			return m.moving(t, slot, int(t.slots[slot].group))
		}
	}
	return nil
}

// minRest is for slots whose move takes longer than the freeze, and for those of no known group.
const minRest = time.Second

// moving returns the reason for which a group cannot serve a slot.
func (m *Map) moving(t *table, slot, group int) *redlock.Moving {
	is := t.slots[slot]
	e := &redlock.Moving{Slots: strconv.Itoa(slot), From: m.names[group], Rest: minRest, Late: true}
	if !is.frozen {
		e.To, e.Moved, e.Rest, e.Late = m.names[is.group], true, 0, false
		return e
	}
	if i := t.moveOf(slot); i >= 0 {
		one := &t.moves[i]
		e.Slots, e.To, e.Unknown = one.slots.String(), one.to, !slices.Contains(m.names, one.to)
		if rest := one.until - m.clock.Now(); rest > 0 {
			e.Rest, e.Late = rest, false
		}
	}
	return e
}

// ownership has one group's part of the map.
type ownership struct {
	m     *Map
	group int
}

func (o ownership) Version() uint32 { return o.m.now.Load().version }

func (o ownership) Since(key redlock.Key) uint32 {
	if p := o.m.at(key); int(p.group) == o.group && !p.frozen {
		return p.since
	}
	return 0
}

func (o ownership) Moving(key redlock.Key) *redlock.Moving {
	return o.m.moving(o.m.now.Load(), slots.Of(string(key)), o.group)
}

// Served are the ranges of slots that are alike, in order.
func (m *Map) Served() (all []slots.Served) {
	t := m.now.Load()
	for slot, p := range t.slots {
		n := m.operations[slot].Load()
		if last := len(all) - 1; last >= 0 && p.sameAs(t.slots[slot-1]) && t.moveOf(slot) == t.moveOf(slot-1) {
			all[last].Last = slot
			all[last].Operations += n
			continue
		}
		one := slots.Served{Range: slots.Range{First: slot, Last: slot}, Group: m.names[p.group], Version: t.versions[p.group], Operations: n}
		if p.frozen {
			e := m.moving(t, slot, int(p.group))
			if one.Frozen, one.To = true, e.To; !e.Late {
				one.Rest = e.Rest
			}
		}
		all = append(all, one)
	}
	return all
}

// sameAs reports whether two slots are at one place, since whenever.
func (p place) sameAs(o place) bool { return p.group == o.group && p.frozen == o.frozen }

// moveOf is the index of the move that freezes a slot; −1 for none.
func (t *table) moveOf(slot int) int {
	if p := t.slots[slot]; p.frozen {
		return slices.IndexFunc(t.moves, func(one move) bool { return one.group == int(p.group) && one.slots.Has(slot) })
	}
	return -1
}

// GroupOf is the name of the group that has a key, or that its slot leaves.
func (m *Map) GroupOf(key redlock.Key) string { return m.names[m.at(key).group] }

// Groups are the slots of each group that has some, for the homes of their keys.
func (m *Map) Groups() []slots.Ranges {
	t, of := m.now.Load(), map[int]slots.Ranges{}
	for slot, p := range t.slots {
		ranges := of[int(p.group)]
		if last := len(ranges) - 1; last >= 0 && ranges[last].Last == slot-1 {
			ranges[last].Last = slot
		} else {
			of[int(p.group)] = append(ranges, slots.Range{First: slot, Last: slot})
		}
	}
	return slices.Collect(maps.Values(of))
}
