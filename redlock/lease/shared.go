// This file implements shared locks: several readers together, or one writer.
//
// Readers are members of a zset at the key, and each has an expiry of its own. A writer
// finds the key taken by readers or by another writer; a reader finds it taken by a
// writer. A quorum of readers' copies and a quorum of writers' copies share a master, and
// that master refused one of the two.

package lease

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// sharedMode shares the key with other readers. With the token of the writer it
// downgrades the writer to a reader. A downgrade is never undone: from the first request
// for it on, the lock is at most a reader's.
//
// The downgrade happens in a second ballot, which names the exact copy by its expiry; the
// first ballot returned that expiry. A command may be on its way to a slow master for
// long. Meanwhile the other masters may have answered its client, and the client may have
// become the writer through another daemon, with a quorum that includes this master. A
// late command must not downgrade that writer.
type sharedMode struct {
	sameAgain
	downgradeBallots int                       // ballots before this one that met a writer
	writers          int                       // masters that report the token as the writer; guarded by the ballot's lock
	ends             *[quorum.MaxMasters]int64 // when that copy ends, ms of the master's clock; each lane writes and reads its own entry
}

// maxDowngradeBallots bounds the ballots: another request may prolong the writer's copy
// between two of them.
const maxDowngradeBallots = 8

var _ lockMode = (*sharedMode)(nil)

func (f *sharedMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	writer := ""
	if f.downgradeBallots > 0 {
		if writer = f.writerEnd(a, m.Lane); writer != "" {
			a.call.downgrading.Store(true)
		}
	}
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Share, "1", a.key, string(a.token), m.Decimal(end), writer)
}

func (f *sharedMode) bulkScript(s *scripts.Set) string { return s.Shares }

func (f *sharedMode) addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64) {
	c.Args = append(c.Args, string(a.token), m.Decimal(end))
}

// writerEnd is the expiry of the copy to downgrade on a master; "" if there is none. Once
// the ballot is decided, the master's answer may describe the copy of a writer that the
// client has become since.
func (f *sharedMode) writerEnd(a *lockBallot, lane int) string {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	if ends := f.ends[lane]; ends > 0 && !a.ballot.Over() {
		return strconv.FormatInt(ends, 10)
	}
	return ""
}

func (f *sharedMode) read(_ *lockBallot, answer pool.Answer) vote {
	r := answer.Reply
	if r.Kind == pool.ReplyArray && answer.Sent && len(r.Items) == 2 {
		f.writers++
		f.ends[answer.Lane] = r.Items[1].Int
		return vote{no: true, hadCopy: true}
	}
	return readVote(answer)
}

// splits reports whether the next ballot makes the reader. That is so if the writer
// has been downgraded on some masters, and the others of a quorum reported its copy too
// late for this ballot. The daemon does not wait for masters without an answer.
func (f *sharedMode) splits(a *lockBallot) bool {
	return f.downgradeBallots > 0 && f.downgradeBallots < maxDowngradeBallots && f.writers > 0 && a.ballot.Tally.Yes+f.writers >= a.ballot.Tally.Quorum
}

// takeBack deletes a level whenever it ends: that follows the other levels, and no other
// ballot has the token.
func (f *sharedMode) takeBack(a *lockBallot, lane int, c copyState) {
	if a.call.request.Reenters == "" {
		a.undo(lane, c, a.key)
	} else if c == copyMade || c == copyMaybe {
		a.undoWithin(lane, c, a.key, a.token, anyExpiry)
	}
}

func (f *sharedMode) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	a.ballot.Lock()
	met := f.writers > 0
	a.ballot.Unlock()
	next := &sharedMode{downgradeBallots: f.downgradeBallots, ends: f.ends}
	if met && f.downgradeBallots < maxDowngradeBallots {
		next.downgradeBallots++
		return next, nil
	}
	_, err := f.sameAgain.after(a, v)
	return next, err
}
