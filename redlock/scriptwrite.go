// Changing a lock in the words of a client that takes the quorum for one Redis:
// DEL, EXPIRE, SET XX, SET IFEQ. Except for the last none of them compares a
// token: whoever says it may be taking the lock from somebody.
package redlock

import (
	"time"

	"redlockd/pool"
)

// WriteEffect is what is done to the copies.
type WriteEffect uint8

const (
	WriteDeletes  WriteEffect = iota
	WriteExpires              // a new expiry, longer or shorter
	WriteReplaces             // another value, with a new expiry
)

var writeWords = []string{"delete", "expire", "set"}

// WriteRequest changes the exclusive lock that is there.
type WriteRequest struct {
	DB     int
	Key    Key
	Effect WriteEffect
	Value  Token         // of WriteReplaces
	Equal  Token         // only while this is there; "" = whatever is
	TTL    time.Duration // but for WriteDeletes; Endless = no expiry
	// EndlessToo: a copy without an expiry is a lock and no data of somebody else's.
	EndlessToo bool
	Trace      *Trace // who hears the votes; nil = nobody
}

// WriteDone is called exactly once, from any goroutine: done is false if there
// is no such lock. err is *NoQuorum, ErrWrongType, *Busy or ErrShutdown.
type WriteDone func(done bool, err error)

// Write changes a lock on a quorum of masters.
func (l *Locker) Write(b *Batch, r WriteRequest, done WriteDone) {
	if r.Effect == WriteDeletes && r.Equal == "" {
		l.deleteSeen(b, r, done)
		return
	}
	l.write(b, r, done)
}

// write asks every master, whatever the others have.
func (l *Locker) write(b *Batch, r WriteRequest, done WriteDone) {
	if err := l.enter(); err != nil {
		done(false, err)
		return
	}
	if r.Effect == WriteDeletes || r.Effect == WriteReplaces && r.Value != r.Equal {
		l.holds.forced(lockID{r.DB, r.Key, r.Equal})
	}
	if b == nil {
		b = &Batch{}
		defer b.Send()
	}
	w := &writing{locker: l, request: r, key: l.masterKey(r.Key), start: l.recent(), done: done}
	w.survey = l.survey(l.pool.Group(r.DB), pool.Plan{Key: w.key, Joins: true, Sealed: true})
	w.survey.command, w.survey.read, w.survey.end, w.survey.late = w.command, w.read, w.decided, w.tooLate
	w.survey.told, w.survey.open = w.told, w.open
	l.submit(b, w.survey.group, l.watch(r.Trace, w.survey))
	if r.Effect != WriteReplaces {
		l.waits.freed(b, place{r.DB, r.Key})
	}
}

// writing is one Write.
type writing struct {
	locker  *Locker
	request WriteRequest
	key     string
	start   time.Duration
	done    WriteDone
	survey  *survey
	ends    [maxMasters]int64 // written for each master, ms of its clock
}

func (w *writing) command(m *pool.Moment, c *pool.Command) bool {
	r := &w.request
	end := ""
	if r.Effect != WriteDeletes && r.TTL < Endless {
		// It prolongs what is there: out of reach of any undo but its own.
		w.ends[m.Lane] = expiry(m.Time, r.TTL, w.locker.late) + prolongs
		end = m.Decimal(w.ends[m.Lane])
	}
	c.Set("EVALSHA", w.locker.script.write, "1", w.key,
		writeWords[r.Effect], end, string(r.Value), string(r.Equal), flag(r.EndlessToo))
	return true
}

// open: the same value, and its copy ends later than was asked for.
func (w *writing) open(answer *pool.Answer) []keptEnd {
	at := answer.Reply.Items
	if len(at) != 3 {
		return nil
	}
	answer.Reply = at[0]
	return []keptEnd{{lane: answer.Lane, key: w.key, ends: at[1].Int, set: w.ends[answer.Lane], value: at[2].Str}}
}

// read: what was done was done, also by a young master, but it makes up no
// quorum that holds.
func (w *writing) read(answer pool.Answer) ScriptVote {
	n := answer.Reply.Int
	switch {
	case answer.Reply.Err != nil, answer.Reply.Kind != pool.ReplyInt:
		return ScriptUnclear
	case n == 1 && (counts(answer) || w.request.Effect == WriteDeletes):
		return ScriptYes
	case n != 1 && counts(answer), n == -1 && answer.Seal.Good:
		return ScriptNo
	}
	return ScriptUnclear
}

// told: whose lock was deleted is not known.
func (w *writing) told(v verdict) {
	if r := &w.request; v == granted && r.Effect == WriteDeletes {
		w.locker.events.emit(EventReleased, lockID{r.DB, r.Key, ""}, 0, 0)
	}
}

func (w *writing) decided(v verdict) {
	l, s := w.locker, w.survey
	l.leave()
	switch {
	case v == granted:
		if r := &w.request; r.Effect == WriteReplaces && r.Value == r.Equal {
			l.trim(s.group, s.kept, deadline(w.start, r.TTL), lockID{r.DB, r.Key, r.Value})
		} else if r.Effect == WriteExpires {
			l.holds.shortened(lockID{r.DB, r.Key, ""}, deadline(w.start, r.TTL))
		}
		w.done(true, nil)
	case v == refused && w.oddMost():
		w.done(false, ErrWrongType)
	case v == refused:
		w.takeBack(s.voters(ScriptYes)...)
		w.done(false, nil)
	default:
		w.takeBack(s.voters(ScriptYes)...)
		w.done(false, l.noQuorum(&s.missing, "some masters may have done it"))
	}
}

// tooLate: behind a refusal there may still be a minority that did it.
func (w *writing) tooLate(lane int, vote ScriptVote, v verdict) {
	if vote == ScriptYes && v == refused {
		w.takeBack(lane)
	}
}

func (w *writing) oddMost() bool {
	w.survey.mu.Lock()
	defer w.survey.mu.Unlock()
	odd := 0
	for i := range w.survey.tally.n {
		if w.survey.votes[i] == ScriptNo && w.survey.replies[i].Int == -1 {
			odd++
		}
	}
	return odd > w.survey.tally.n-w.survey.tally.quorum
}

// takeBack deletes a value that a minority was given: nobody holds anything by it,
// unless it was there before.
func (w *writing) takeBack(lanes ...int) {
	l, r := w.locker, &w.request
	if r.Effect != WriteReplaces || r.TTL >= Endless || r.Value == r.Equal {
		return
	}
	for _, lane := range lanes {
		l.counts.undone.Add(1)
		debt := l.releaseDebt(w.key, r.Value, w.ends[lane]-1, w.ends[lane]+1, w.start+r.TTL+4*l.late)
		w.survey.group.Push(lane, &repeated{group: w.survey.group, key: w.key, debt: debt})
	}
}
