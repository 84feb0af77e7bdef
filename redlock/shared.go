// Readers together, or one writer.
//
// Readers are members of a zset at the key, each with an end of its own. A
// writer finds the key taken, whoever it is; a reader finds it taken by a writer.
// A quorum of readers' copies and a quorum of writers' copies share a master, and
// there one of the two was refused.
package redlock

import (
	"strconv"

	"redlockd/pool"
)

// reader shares the key with other readers. With the token of the writer it
// turns the writer into a reader: that is never undone, and from the moment it
// was asked for the lock is at most a reader's.
//
// The writer steps down in a second ballot, that names the very copy it is about,
// by its end, which the first one was told. A question may be on its way to a slow
// master for long: its client may have been answered by the others, and have become
// the writer since, through another daemon, with a quorum to which this master
// belongs. What is late must not step that writer down.
type reader struct {
	steps int                // ballots before this one in which a writer was met
	told  int                // masters that say that the token is the writer; guarded by the attempt's lock
	ends  *[maxMasters]int64 // when that copy ends, ms of the master's clock; of each lane, written and read on it
}

// mostSteps bounds the ballots: somebody prolongs the writer's copy between two of them.
const mostSteps = 8

var _ form = (*reader)(nil)

func (f *reader) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	writer := ""
	if f.steps > 0 {
		if writer = f.writerOn(a, m.Lane); writer != "" {
			a.call.stepping.Store(true)
		}
	}
	c.Set("EVALSHA", a.call.locker.script.share, "1", a.key, string(a.token), m.Decimal(end), writer)
}

// writerOn is the end of the copy that steps down on a master; "" if none does. Once
// the ballot is decided, what the master has told of may be the copy of a writer
// that its client has become since.
func (f *reader) writerOn(a *attempt, lane int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ends := f.ends[lane]; ends > 0 && !a.over {
		return strconv.FormatInt(ends, 10)
	}
	return ""
}

func (f *reader) read(_ *attempt, answer pool.Answer) said {
	r := answer.Reply
	if r.Kind == pool.ReplyArray && answer.Asked && len(r.Items) == 2 {
		f.told++
		f.ends[answer.Lane] = r.Items[1].Int
		return said{refused: true, repeats: true}
	}
	return readTaken(answer)
}

// stepsNext tells whether the next ballot makes the reader: its writer has stepped down
// on some masters, and the others of a quorum have told of its copy too late for this
// one. A master that says nothing is not waited for meanwhile.
func (f *reader) stepsNext(a *attempt) bool {
	return f.steps > 0 && f.steps < mostSteps && f.told > 0 && a.tally.yes+f.told >= a.tally.quorum
}

func (f *reader) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

func (f *reader) after(a *attempt, v verdict) (form, error) {
	a.mu.Lock()
	met := f.told > 0
	a.mu.Unlock()
	next := &reader{steps: f.steps, ends: f.ends}
	if met && f.steps < mostSteps {
		next.steps++
		return next, nil
	}
	return sameAgain(next, a, v)
}
