// Carry: what slots take along to another group: counters, records of work, and the height of the
// fences. It is read on a quorum of the group that gave them up, of masters that have forgotten
// nothing; so it has each id that was given, each end of work that was acknowledged, and each fence.
//
// A master of the other group gets all of it while it carries the former configuration, under which
// nothing is granted in these slots. So it also loses what it has of them from an earlier time: its
// ids are in use elsewhere by now.

package setup

import (
	"context"
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

// carried is what the slots take along, by database.
type carried []carriedDB

type carriedDB struct {
	values   map[string][]string // by key: what carry.lua writes there
	register int64               // the highest
	forgot   bool                // a counter that is not there may be a forgotten one
}

func (c carried) text() string {
	counters, works := 0, 0
	for _, db := range c {
		for _, value := range db.values {
			if len(value) == 1 {
				counters++
			} else {
				works++
			}
		}
	}
	return fmt.Sprintf("%d counters and %d records of work", counters, works)
}

// remembers reports in how long a master has forgotten nothing in a database; ok is false if it never
// will: it does not carry the configuration, is about to begin a new incarnation, or was rolled back.
func (s *side) remembers(one *candidate, db int) (in time.Duration, ok bool) {
	r := &one.seals[db]
	incarnation, err := admission.ParseIdentity(r.identity)
	if err != nil || !has(s.newest.Now, one.master.Name) || r.mark() != s.newest.Now.Mark() || r.register < r.minRegister {
		return 0, false
	}
	o := &s.group.options
	if incarnation.RunID+":"+incarnation.Evicted != one.info.RunID+":"+one.info.Evicted &&
		!(incarnation.RunID != one.info.RunID && one.info.Evicted == "0" && incarnation.Durable && one.info.Durable(o.AssumeDurable)) {
		return 0, false
	}
	now := one.info.Est.At(o.Clock.Now())
	return max(0, time.Duration(incarnation.Base-now)*time.Microsecond+o.WorkAge()), true
}

// awaitMemories waits until a quorum of the masters remembers everything.
func (s *side) awaitMemories(ctx context.Context) error {
	quorum, longest := pool.Quorum(len(s.newest.Now.Masters)), time.Duration(0)
	for db := range s.group.options.Databases {
		var waits []time.Duration
		for _, one := range s.all {
			if in, ok := s.remembers(one, db); ok {
				waits = append(waits, in)
			}
		}
		if !s.used(db) {
			continue
		}
		if len(waits) < quorum {
			return fmt.Errorf("slots: database %d: %d masters of group %s answer with an unbroken memory, %d must: bring them back, and run the same command again", db, len(waits), s.name(), quorum)
		}
		slices.Sort(waits)
		longest = max(longest, waits[quorum-1])
	}
	if longest <= 0 {
		return nil
	}
	text := fmt.Sprintf("the masters of group %s have forgotten something: waiting %%s until nothing of that matters\n", s.name())
	if err := s.group.countdown(ctx, longest, text, s.out); err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.awaitMemories(ctx)
}

// readAll reads what the slots have in all databases. What is unknown is an error that ends with so.
func (s *side) readAll(ranges slots.Ranges, so string) (all carried, err error) {
	for db := range s.group.options.Databases {
		one := carriedDB{values: map[string][]string{}}
		one.register, _ = highest(s.all, db)
		if s.used(db) {
			if err := s.readDB(db, ranges, &one, so); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

type keyState struct {
	trusted int // masters that are sure of the counter
	zeros   int // those that have it, of the masters for which a missing counter is 0
	value   int64
	work    []string
	text    string // of a counter that is none
}

func (s *side) readDB(db int, ranges slots.Ranges, of *carriedDB, so string) error {
	quorum, read, zeros := pool.Quorum(len(s.newest.Now.Masters)), 0, 0
	all := map[string]*keyState{}
	for _, one := range s.all {
		if in, ok := s.remembers(one, db); !ok || in > 0 {
			continue
		}
		incarnation, _ := admission.ParseIdentity(one.seals[db].identity) // it has been read
		if err := s.readMaster(one, db, ranges, incarnation, all); err != nil {
			return fmt.Errorf("slots: master %s, database %d: %w; run the same command again", one.master.Name, db, err)
		}
		read++
		if incarnation.Base == 0 {
			zeros++
		}
	}
	if read < quorum {
		return fmt.Errorf("slots: database %d: %d masters of group %s answer with an unbroken memory, %d must: bring them back, and run the same command again", db, read, s.name(), quorum)
	}
	of.forgot = zeros < quorum
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		state := all[key]
		if state.work != nil {
			of.values[key] = state.work
			continue
		}
		of.values[key] = []string{strconv.FormatInt(state.value, 10)}
		if trusted := state.trusted + zeros - state.zeros; trusted < quorum {
			lost = append(lost, fmt.Sprintf("counter '%s' (database %d) is remembered by %d trusted masters of group %s, %d needed, and the highest value found is %d%s",
				s.nameOf(key), db, trusted, s.name(), quorum, state.value, state.text))
		}
	}
	if len(lost) > 0 {
		more := ""
		if n := len(lost) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d others)", n)
		}
		return fmt.Errorf("slots: %s%s; %s. Bring back masters that are away, or set it with DIDRESEED, and run the same command again", lost[0], more, so)
	}
	return nil
}

// nameOf is the name of a counter, without what stands before it.
func (s *side) nameOf(key string) string {
	_, name, _ := strings.Cut(key, stored.Counters)
	return name
}

// readMaster adds what one master has.
func (s *side) readMaster(one *candidate, db int, ranges slots.Ranges, incarnation *admission.Incarnation, all map[string]*keyState) error {
	counters, works, err := s.scan(one, db, ranges)
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
	for page := range slices.Chunk(works, carryPage) {
		replies, err := wire.Ask(one.link, append(each(page, "HMGET", stored.WorkFields...), each(page, "PTTL")...)...)
		if err != nil {
			return err
		}
		for i, key := range page {
			if work := readWork(replies[i], replies[len(page)+i]); work != nil && (all[key] == nil || newerWork(work, all[key].work)) {
				all[key] = &keyState{work: work}
			}
		}
	}
	return s.unchanged(one, db)
}

func each(keys []string, command string, more ...string) (commands []wire.Command) {
	for _, key := range keys {
		commands = append(commands, wire.Words(append([]string{command, key}, more...)...))
	}
	return commands
}

// unchanged: what was read is of one memory.
func (s *side) unchanged(one *candidate, db int) error {
	reply, err := inDB(one.link, db, "ZRANGE", s.group.sealKey(), "0", "-1", "WITHSCORES")
	if err == nil && readSealed(reply.Items).identity != one.seals[db].identity {
		err = errChanged
	}
	return err
}

var errChanged = errors.New("its identity changed meanwhile")

// scan lists the counters and the records of work in the slots, of all key prefixes.
func (s *side) scan(one *candidate, db int, ranges slots.Ranges) (counters, works []string, err error) {
	if err := selectDB(one.link, db); err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{} // a page may repeat what another one had
	for _, prefix := range s.newest.Now.Prefixes {
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
				case isCounter && ranges.Has(slots.Of(counter)):
					counters = append(counters, item.Str)
				case isWork && ranges.Has(slots.Of(work)):
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
	if incarnation.Base == 0 {
		k.zeros++
	}
	value, tag, ok := stored.ParseCounter(reply.Str)
	switch {
	case reply.Kind == wire.ReplyNil: // it was deleted since it was listed
		k.zeros--
		return k
	case reply.Err != nil || !ok:
		k.text = "; a master has something at its key that is no counter"
		return k
	}
	k.value = max(k.value, value)
	if tag == incarnation.ID {
		k.trusted++
	}
	return k
}

// readWork is a record as carry.lua takes it: its ms left, and the fields. nil = none.
func readWork(fields, left wire.Reply) (work []string) {
	if fields.Err != nil || len(fields.Items) != len(stored.WorkFields) || fields.Items[0].Kind == wire.ReplyNil || left.Int < 0 {
		return nil
	}
	work = []string{strconv.FormatInt(left.Int, 10)}
	for i, f := range fields.Items {
		if i == len(stored.WorkFields)-1 && f.Kind == wire.ReplyNil {
			break // no result
		}
		work = append(work, f.Str)
	}
	return work
}

// newerWork reports whether one master's record counts rather than another's. An end counts above an
// attempt: a quorum may have acknowledged it, and no attempt runs any more. Of two ends, or of two
// attempts, it is the newer one.
func newerWork(a, b []string) bool {
	if done := a[1] == "D"; done != (b[1] == "D") {
		return done
	}
	return attemptOf(a).IsNewer(attemptOf(b))
}

func attemptOf(work []string) stored.Attempt {
	n, _ := strconv.ParseInt(work[2], 10, 64)
	return stored.Attempt{Number: n, Owner: work[3]}
}

// install gives one master of the target what is carried over, before it gets the next configuration.
func (s *side) install(one *candidate, all carried, ranges slots.Ranges) error {
	renamed := append(s.lostChanges(), s.former)
	for db := range all {
		mark := one.seals[db].mark()
		if !slices.ContainsFunc(renamed, func(c *admission.Configuration) bool { return c.Mark() == mark }) {
			continue // it has it, or begins a new incarnation
		}
		if err := s.installDB(one, db, &all[db], ranges); err != nil {
			return fmt.Errorf("database %d: %w", db, err)
		}
	}
	return nil
}

func (s *side) installDB(one *candidate, db int, of *carriedDB, ranges slots.Ranges) error {
	counters, works, err := s.scan(one, db, ranges)
	if err != nil {
		return err
	}
	values := maps.Clone(of.values)
	for _, key := range append(counters, works...) {
		if _, carries := values[key]; !carries {
			values[key] = nil // of an earlier time
		}
	}
	identity := one.seals[db].identity
	keys := slices.Sorted(maps.Keys(values))
	for page := range slices.Chunk(append(keys, ""), carryPage) { // the last one also raises the register
		last := page[len(page)-1] == ""
		register := "0"
		if last {
			page, register = page[:len(page)-1], strconv.FormatInt(of.register, 10)
		}
		args := []string{"EVAL", carryScript, strconv.Itoa(1 + len(page)), s.group.sealKey()}
		args = append(append(args, page...), identity, register, admission.Bit(last && of.forgot))
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
