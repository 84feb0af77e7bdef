// Carry: what masters take over from others: counters, records of work, and the height of the
// fences. It is read on a quorum of the masters of one configuration, of those that have forgotten
// nothing; so it has each id that was given, each end of work that was acknowledged, and each fence.
//
// Slots take it along to another group, see moves.go. A master of that group gets all of it while it
// carries the former configuration, under which nothing is granted in these slots. So it also loses
// what it has of them from an earlier time: its ids are in use elsewhere by now.
//
// A change of the masters gives it to the masters of the group itself, see share.go.

package setup

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
	"redlockd/redlock/slots"
	"redlockd/redlock/stored"
)

//go:embed carry.lua
var carryScript string

// carryPage bounds the keys of one command.
const carryPage = 200

// carried has what is carried over, by database.
type carried []carriedDB

type carriedDB struct {
	values   map[string][]string // by key: what carry.lua writes there
	register int64               // the highest
	forgot   bool                // a counter that is not there may be a forgotten one
	noWorks  bool                // and so may a record of work
	lost     []string            // of each counter that no quorum is sure of, why
}

func (c carried) text() string {
	counters, works := 0, 0
	for _, db := range c {
		for _, value := range db.values {
			if len(value) <= 2 {
				counters++
			} else {
				works++
			}
		}
	}
	return fmt.Sprintf("%d counters and %d records of work", counters, works)
}

// memories has what the masters of one configuration remember.
type memories struct {
	group  *group
	all    []*candidate
	what   string // the command, for errors
	of     *admission.Configuration
	marks  []string // of the configuration, and of changes to others that lost
	ranges slots.Ranges
	frozen bool // nothing is granted in them any more
}

// incarnation returns what a master has in a database; nil if it does not carry the configuration, is about
// to begin a new incarnation, or may have come back with an older file.
func (m *memories) incarnation(one *candidate, db int) *admission.Incarnation {
	r := &one.seals[db]
	incarnation, err := admission.ParseIdentity(r.identity)
	if err != nil || !has(m.of, one.master.Name) || !slices.Contains(m.marks, r.mark()) || r.register < r.minRegister || r.older {
		return nil
	}
	if incarnation.RunID+":"+incarnation.Evicted != one.info.RunID+":"+one.info.Evicted &&
		!(incarnation.RunID != one.info.RunID && one.info.Evicted == "0" && incarnation.Durable && one.info.Durable(m.group.options.AssumeDurable)) {
		return nil
	}
	return incarnation
}

// untilKnows is in how long a memory lacks no record of work.
func (m *memories) untilKnows(one *candidate, of *admission.Incarnation) time.Duration {
	if of.Works {
		return 0
	}
	return m.untilAged(one, of, m.group.options.WorkAge())
}

// untilAged is in how long a memory has an age.
func (m *memories) untilAged(one *candidate, of *admission.Incarnation, age time.Duration) time.Duration {
	return max(0, time.Duration(of.Base-one.info.Est.At(m.group.options.Clock.Now()))*time.Microsecond+age)
}

// lostText is an error for the first of the counters that were lost.
func lostText(lost []string, so string) string {
	more := ""
	if n := len(lost) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d others)", n)
	}
	return fmt.Sprintf("%s%s; %s. Bring back masters that are away, or set it with DIDRESEED, and run the same command again", lost[0], more, so)
}

type keyState struct {
	trusted int // masters that are sure of the counter
	zeros   int // those that have it, of the masters for which a missing counter is 0
	value   int64
	works   map[string]*workState // by owner
	text    string                // of a counter that is none
}

// readDB reads what the masters have in one database.
func (m *memories) readDB(db int) (of carriedDB, err error) {
	of.values = map[string][]string{}
	of.register, _ = highest(m.all, db)
	if !used(m.all, db) {
		return of, nil
	}
	quorum, knowing, zeros := pool.Quorum(len(m.of.Masters)), 0, 0
	all := map[string]*keyState{}
	for _, one := range m.all {
		incarnation := m.incarnation(one, db)
		if incarnation == nil {
			continue
		}
		knows := m.untilKnows(one, incarnation) <= 0
		if err := m.readMaster(one, db, incarnation, knows, all); err != nil {
			return of, fmt.Errorf("%s: master %s, database %d: %w; run the same command again", m.what, one.master.Name, db, err)
		}
		if knows {
			knowing++
		}
		if incarnation.Counters {
			zeros++
		}
	}
	of.forgot, of.noWorks = zeros < quorum, knowing < quorum
	for _, key := range slices.Sorted(maps.Keys(all)) {
		state := all[key]
		if state.works != nil {
			if !of.noWorks {
				of.values[key] = state.newest()
			}
			continue
		}
		of.values[key] = []string{strconv.FormatInt(state.value, 10)}
		if trusted := state.trusted + zeros - state.zeros; trusted < quorum {
			of.values[key] = append(of.values[key], "")
			of.lost = append(of.lost, fmt.Sprintf("counter '%s' (database %d) is remembered by %d trusted masters of group %s, %d needed, and the highest value found is %d%s",
				nameOf(key), db, trusted, m.group.options.Group, quorum, state.value, state.text))
		}
	}
	return of, nil
}

// nameOf is the name of a counter, without what stands before it.
func nameOf(key string) string {
	_, name, _ := strings.Cut(key, stored.Counters)
	return name
}

// readMaster adds what one master has; of works only if it knows all of them.
func (m *memories) readMaster(one *candidate, db int, incarnation *admission.Incarnation, knows bool, all map[string]*keyState) error {
	counters, works, err := m.scan(one, db)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(counters, carryPage) {
		replies, err := wire.Ask(one.link, each(page, "GET")...)
		if err != nil {
			return err
		}
		for i, key := range page {
			all[key] = all[key].counted(replies[i], incarnation)
		}
	}
	if !knows {
		works = nil
	}
	for page := range slices.Chunk(works, carryPage) {
		replies, err := wire.Ask(one.link, append(each(page, "HMGET", append([]string{"e"}, stored.WorkFields...)...), each(page, "PTTL")...)...)
		if err != nil {
			return err
		}
		for i, key := range page {
			work := readWork(replies[i], replies[len(page)+i])
			if work == nil || m.mayBeUndone(one, work) {
				continue
			}
			if m.frozen {
				work[1] = "0" // it is over
			}
			if all[key] == nil {
				all[key] = &keyState{works: map[string]*workState{}}
			}
			all[key].add(work)
		}
	}
	return m.unchanged(one, db)
}

func each(keys []string, command string, more ...string) (commands []wire.Command) {
	for _, key := range keys {
		commands = append(commands, wire.Words(append([]string{command, key}, more...)...))
	}
	return commands
}

// maxUndone is how long a daemon takes at most, other faults aside, to take back an attempt that it
// did not grant.
const maxUndone = 2 * time.Second

// mayBeUndone reports whether an attempt is so new that it may not be granted yet: on other masters it
// would count as one that failed.
func (m *memories) mayBeUndone(one *candidate, work []string) bool {
	now := one.info.Est.At(m.group.options.Clock.Now()) / 1000
	return !m.frozen && work[1] == "1" && attemptOf(work).Began() > now-maxUndone.Milliseconds()
}

// unchanged: what was read is of one memory.
func (m *memories) unchanged(one *candidate, db int) error {
	reply, err := inDB(one.link, db, "ZRANGE", m.group.sealKey(), "0", "-1", "WITHSCORES")
	if err == nil && readSealed(reply.Items).identity != one.seals[db].identity {
		err = errChanged
	}
	return err
}

var errChanged = errors.New("its identity changed meanwhile")

// scan lists the counters and the records of work in the slots, of all key prefixes.
func (m *memories) scan(one *candidate, db int) (counters, works []string, err error) {
	if err := selectDB(one.link, db); err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{} // a page may repeat what another one had
	for _, prefix := range m.of.Prefixes {
		for cursor := "0"; ; {
			reply, err := wire.AskOne(one.link, "SCAN", cursor, "MATCH", pool.GlobEscape(prefix+stored.Own)+"*", "COUNT", "1000")
			if err = errors.Join(err, reply.Err); err != nil {
				return nil, nil, err
			}
			if len(reply.Items) != 2 {
				return nil, nil, errors.New("answered SCAN with something unexpected")
			}
			for _, item := range reply.Items[1].Items {
				key := strings.TrimPrefix(item.Str, prefix)
				counter, isCounter := strings.CutPrefix(key, stored.Counters)
				work, isWork := strings.CutPrefix(key, stored.Works)
				switch {
				case seen[item.Str]:
				case isCounter && m.ranges.Has(slots.Of(counter)):
					counters = append(counters, item.Str)
				case isWork && m.ranges.Has(slots.Of(work)):
					works = append(works, item.Str)
				}
				seen[item.Str] = true
			}
			if cursor = reply.Items[0].Str; cursor == "0" {
				break
			}
		}
	}
	return counters, works, nil
}

// counted adds one master's value.
func (k *keyState) counted(reply wire.Reply, incarnation *admission.Incarnation) *keyState {
	if k == nil {
		k = &keyState{}
	}
	if incarnation.Counters {
		k.zeros++
	}
	value, tag, ok := stored.ParseCounter(reply.Str)
	switch {
	case reply.Kind == wire.ReplyNil: // it was deleted since it was listed
		if incarnation.Counters {
			k.zeros--
		}
		return k
	case reply.Err != nil || !ok:
		k.text = "; a master has something at its key that is no counter"
		return k
	}
	k.value = max(k.value, value)
	if tag == incarnation.ID || tag == "-" && incarnation.Counters { // see nextid.lua
		k.trusted++
	}
	return k
}

// minWork is how much longer a record must be remembered: no memory that is too new votes before that is
// over, and masters forget a record within the difference of their clocks.
const minWork = 2 * admission.MaxSkew

// readWork is a record as carry.lua takes it: its ms left, whether its attempt may run, and the fields.
// nil = none.
func readWork(fields, left wire.Reply) (work []string) {
	if fields.Err != nil || len(fields.Items) != 1+len(stored.WorkFields) || fields.Items[1].Kind == wire.ReplyNil || left.Int < minWork.Milliseconds() {
		return nil
	}
	runs := fields.Items[1].Str == "R" && fields.Items[0].Str != "0"
	work = []string{strconv.FormatInt(left.Int, 10), admission.Bit(runs)}
	for i, f := range fields.Items[1:] {
		if i == len(stored.WorkFields)-1 && f.Kind == wire.ReplyNil {
			break // no result
		}
		work = append(work, f.Str)
	}
	return work
}

// workState is an attempt, as the masters show it.
type workState struct {
	work    []string
	masters int
}

// add: of one attempt counts its end, or else what lasts longer.
func (k *keyState) add(work []string) {
	of := k.works[work[4]]
	if of == nil {
		of = &workState{}
		k.works[work[4]] = of
	}
	of.masters++
	if last := of.work; last == nil || work[2] < last[2] || work[2] == last[2] && (work[1] < last[1] || work[1] == last[1] && msOf(work) > msOf(last)) {
		of.work = work // D comes before R
	}
}

// newest is the record that counts. An end counts above an attempt: a quorum may have acknowledged it,
// and no attempt begins after it. Of two ends it is the newer one. Of two attempts it is the one with the
// higher number, whichever began later: a master that missed the others may have accepted one that was
// never granted, and has a low number. Numbers start again when a work is forgotten, but a record that is
// about to be is left out. Of attempts with one number, that of most masters counts.
func (k *keyState) newest() (work []string) {
	var best *workState
	for _, owner := range slices.Sorted(maps.Keys(k.works)) {
		if of := k.works[owner]; best == nil || of.isNewer(best) {
			best = of
		}
	}
	return best.work
}

func (w *workState) isNewer(other *workState) bool {
	a, b := attemptOf(w.work), attemptOf(other.work)
	done, otherDone := w.work[2] == "D", other.work[2] == "D"
	switch {
	case done != otherDone:
		return done
	case done:
		return a.IsNewer(b)
	}
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(w.masters, other.masters), cmp.Compare(a.Began(), b.Began())) > 0
}

func msOf(work []string) int64 {
	ms, _ := strconv.ParseInt(work[0], 10, 64)
	return ms
}

func attemptOf(work []string) stored.Attempt {
	n, _ := strconv.ParseInt(work[3], 10, 64)
	return stored.Attempt{Number: n, Owner: work[4]}
}

// installDB writes to a master what is carried over, and what it knows then, see carry.lua.
func (m *memories) installDB(one *candidate, db int, of *carriedDB, knows string) error {
	counters, works, err := m.scan(one, db)
	if err != nil {
		return err
	}
	values := maps.Clone(of.values)
	add := func(keys []string, value []string) {
		for _, key := range keys {
			if _, carries := values[key]; !carries {
				values[key] = value
			}
		}
	}
	switch { // what the others do not have is of an earlier time, or of this moment
	case m.frozen:
		add(append(counters, works...), nil)
	case knows == admission.KnowsAll:
		add(counters, []string{"0"})
	}
	identity := one.seals[db].identity
	keys := slices.Sorted(maps.Keys(values))
	for page := range slices.Chunk(append(keys, ""), carryPage) { // the last one also raises the register
		last := page[len(page)-1] == ""
		register, learned := "0", ""
		if last {
			page, register, learned = page[:len(page)-1], strconv.FormatInt(of.register, 10), knows
		}
		args := []string{"EVAL", carryScript, strconv.Itoa(1 + len(page)), m.group.sealKey()}
		args = append(append(args, page...), identity, register, learned, admission.Bit(!m.frozen))
		for _, key := range page {
			args = append(append(args, strconv.Itoa(len(values[key]))), values[key]...)
		}
		reply, err := wire.AskOne(one.link, args...)
		if err = errors.Join(err, reply.Err); err != nil {
			return err
		}
		if reply.Str != "OK" {
			return errChanged
		}
	}
	return nil
}
