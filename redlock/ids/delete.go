// deletion deletes a counter of ids for the operator.
//
// A deletion makes masters forget votes, and ids rely on votes. Four rules make it safe. They
// leave one thing to the operator's decision: ids up to the confirmed value may be given again.
//
//  1. A quorum of masters that vouch for the counter shows it, and the value to confirm
//     is the highest that any of them shows. No id above it was given.
//  2. A master deletes exactly the text that it has shown, or nothing. A vote that is cast
//     meanwhile changes the text, so no vote is lost that was cast after the inspection. A
//     counter is gone when a quorum has deleted it. A round that succeeds beside the
//     deletion shares a master with that quorum, and its votes all stay.
//  3. A master deletes within DeleteTime of the inspection, by its own clock. A command that
//     arrives later cannot take a later counter for the one that was shown.
//  4. The answer is held back until no round that has a lost vote counts any more: for
//     idRoundTime, and for DeleteTime before, if a master has not answered.
//
// A master that was down keeps its copy. That copy causes no doubt: a master accepts only ids
// above its value. So the copy can make later ids jump above the old value once the master
// votes, but it never repeats one. The answer names a copy that stays, and the next deletion
// finds it: the value to confirm is then that of the copy.
//
// A change of the masters gives it to all of them.
//
// A later DNEXTID begins at 1, or above what its daemon remembers of the counter. On masters
// that have lost their memory, a counter that is not there may be a forgotten one; there
// DNEXTID answers LOSTSTATE until DIDRESEED, or until a change of the masters has given them
// what the others remember.

package ids

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// DeleteTime bounds the time after the inspection in which a master may delete.
const DeleteTime = 2 * time.Second

// CounterFate is the result of a deletion on one master.
type CounterFate struct {
	Master string
	Fate   string // one of the words below
}

// Fates of a counter on a master.
const (
	CounterDeleted    = "deleted"
	CounterAbsent     = "absent"     // it was not there
	CounterChanged    = "changed"    // it changed after the inspection, or the time was over: it is there
	CounterUnanswered = "unanswered" // a copy may be there
)

// deletion is one deletion under way.
type deletion struct {
	ids     *IDs
	group   *pool.Group
	id      counterID
	confirm int64
	shown   []shownCounter // by lane
	done    func([]CounterFate, error)
}

// shownCounter has what a master has shown of a counter.
type shownCounter struct {
	code    int64 // of the script; −2 = no answer that counts
	value   int64
	trusted bool
	text    string
	at      int64 // ms of the master's clock
}

func readShown(a pool.Answer) shownCounter {
	if a.Reply.Kind != pool.ReplyArray || len(a.Reply.Items) != 5 || !a.Seal.Good || a.Seal.Quarantined {
		return shownCounter{code: -2}
	}
	value := readID(a.Reply)
	at, err := strconv.ParseInt(a.Reply.Items[4].Str, 10, 64)
	if err != nil {
		return shownCounter{code: -2}
	}
	return shownCounter{value.code, value.number, value.trusted, a.Reply.Items[3].Str, at}
}

// DeleteCounter deletes a counter whose value is confirm. done is called exactly once; its
// errors are *NotConfirmed, *InUse, *LostState, *NoQuorum, engine.ErrWrongType and ErrShutdown.
func (is *IDs) DeleteCounter(db int, name engine.Key, confirm int64, done func([]CounterFate, error)) {
	if err := is.engine.Enter(); err != nil {
		done(nil, err)
		return
	}
	d := &deletion{ids: is, group: is.engine.Pool.Group(db), id: counterID{db, name}, confirm: confirm, done: done}
	d.query(func(int) (until, text string) { return "", "" }, d.onShown)
}

// query sends the script to every master; with an end the script deletes the counter there.
func (d *deletion) query(with func(lane int) (until, text string), done func([]pool.Answer)) {
	key := d.ids.key(d.id.name)
	d.ids.engine.Collect(nil, d.group, pool.Props{Sealed: true}, func(m *pool.SendContext, c *pool.Command) {
		until, text := with(m.Lane)
		c.Set("EVALSHA", d.ids.engine.Scripts.DeleteID, "1", key, m.Incarnation.ID, blankIsZero(m.Incarnation), until, text)
	}, done)
}

func (d *deletion) reject(err error) {
	d.ids.engine.Leave()
	d.done(nil, err)
}

func (d *deletion) onShown(answers []pool.Answer) {
	d.shown = make([]shownCounter, len(answers))
	shown, trusted, wrongType, there := 0, 0, 0, false
	highest := int64(0)
	var m engine.Missing
	for lane, a := range answers {
		s := readShown(a)
		d.shown[lane] = s
		if s.code == 1 || s.code == -1 {
			m.MarkCounted(lane)
		} else {
			m.MarkMissing(lane, d.ids.engine.Pool.Absence(&answers[lane]))
		}
		switch s.code {
		case 1:
			shown++
			there = there || s.text != ""
			highest = max(highest, s.value)
			if s.trusted {
				trusted++
			}
		case -1:
			wrongType++
		}
	}
	e, needed := d.ids.engine, d.ids.engine.Pool.Quorum()
	switch {
	case wrongType > e.Pool.N()-needed:
		d.reject(&engine.ForeignData{Keys: []string{d.ids.key(d.id.name)}})
	case shown < needed:
		d.reject(e.NoQuorum(&m, "nothing was deleted"))
	case !there || highest != d.confirm:
		d.reject(&NotConfirmed{Counter: d.id.name, Confirm: d.confirm, Value: highest, Absent: !there})
	case trusted < needed:
		d.reject(&LostState{Counter: d.id.name, Trusted: trusted, Needed: needed, Highest: highest})
	default:
		d.query(func(lane int) (until, text string) {
			s := d.shown[lane]
			if s.code != 1 {
				return "", "" // the script only inspects: the content of this master is not known
			}
			return strconv.FormatInt(s.at+DeleteTime.Milliseconds(), 10), s.text
		}, d.onDeleted)
	}
}

// onDeleted counts what was deleted and answers when no lost vote counts any more.
func (d *deletion) onDeleted(answers []pool.Answer) {
	fates, gone, open := make([]CounterFate, len(answers)), 0, false
	var changed []string
	var m engine.Missing
	for lane, s := range d.group.Statuses() {
		fate := CounterUnanswered
		switch result := readShown(answers[lane]); {
		case d.shown[lane].code != 1:
		case result.code == 1 && result.text == "":
			fate = CounterAbsent
			gone++
		case result.code == 1:
			fate = CounterDeleted
			gone++
		case result.code == 0:
			fate = CounterChanged
			changed = append(changed, s.Name)
		default:
			open = open || answers[lane].Sent
		}
		if fate == CounterUnanswered {
			m.MarkMissing(lane, d.ids.engine.Pool.Absence(&answers[lane]))
		} else {
			m.MarkCounted(lane)
		}
		fates[lane] = CounterFate{s.Name, fate}
	}
	wait := idRoundTime + idRoundMargin
	if open {
		wait += DeleteTime + idRoundMargin
	}
	e, needed := d.ids.engine, d.ids.engine.Pool.Quorum()
	e.Leave() // a daemon that stops need not wait for the answer
	e.Clock.AfterFunc(wait, func() {
		d.ids.forget(d.id)
		switch {
		case gone >= needed:
			d.done(fates, nil)
		case len(changed) > 0:
			d.done(fates, &InUse{Counter: d.id.name, Confirm: d.confirm, Changed: changed, Deleted: gone, Needed: needed})
		default:
			d.done(fates, e.NoQuorum(&m, "the counter is deleted on the masters that answered, and ids up to the confirmed value may be given again; repeat the command"))
		}
	})
}
