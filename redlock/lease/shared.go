// This file implements shared locks: several readers together, or one writer.
//
// Readers are members of a zset at the key, and each has an expiry of its own. A writer
// finds the key taken by readers or by another writer; a reader finds it taken by a
// writer. A quorum of readers' copies and a quorum of writers' copies share a master, and
// that master refused one of the two.

package lease

import (
	"strconv"
	"sync/atomic"

	"redlockd/pool"
	"redlockd/redlock/engine"
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
	queueCheck
	sharedFences
	level            bool // of a reentrant lock
	downgradeBallots int  // ballots before this one that met a writer
	writers          int  // masters that report the token as the writer; guarded by the ballot's lock
	downgrade        *downgrade
}

// downgrade is what the ballots of one request know of the writer.
type downgrade struct {
	ends [quorum.MaxMasters]int64 // when its copy ends, ms of the master's clock; each lane writes and reads its own entry
	// begun is set once a master has been sent the command that makes the writer a reader. That command is
	// never undone, so from then on the token holds at most a reader's lock.
	begun atomic.Bool
}

// maxDowngradeBallots bounds the ballots: another request may prolong the writer's copy
// between two of them.
const maxDowngradeBallots = 8

var (
	_ ballotMode  = (*sharedMode)(nil)
	_ fencingMode = (*sharedMode)(nil)
)

// readerMode is the Mode of readers, and of the levels of a reentrant lock: these hold the key together, and
// nothing else does beside them.
type readerMode struct {
	oneToken
	owner engine.Token // of the levels; "" = readers
}

// Readers hold the keys together.
var Readers Mode = &readerMode{}

// LevelsOf is the mode of the levels of a reentrant lock. Their tokens are generated: the request has none.
func LevelsOf(owner engine.Token) Mode { return &readerMode{owner: owner} }

func (f *readerMode) Kind() Kind { return Shared }

func (f *readerMode) token(fresh engine.Token) engine.Token {
	if f.owner != "" {
		return engine.LevelOf(f.owner, fresh)
	}
	return fresh
}

func (f *readerMode) ballot(a *lockBallot) ballotMode {
	if len(a.rest) > 0 {
		return &multiSharedMode{multiMode: multiMode{queueCheck: newQueueCheck(a), shared: true}}
	}
	return &sharedMode{queueCheck: newQueueCheck(a), level: f.owner != "", downgrade: &downgrade{}}
}

func (f *sharedMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	writer := ""
	if f.downgradeBallots > 0 {
		if writer = f.writerEnd(a, m.Lane); writer != "" {
			f.downgrade.begun.Store(true)
		}
	}
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Share, "1", a.key, string(a.token), m.Decimal(end), writer)
	f.precede(a, c)
}

func (f *sharedMode) bulkScript(a *lockBallot, s *scripts.Set) string {
	if f.level || !isFresh(a) {
		return ""
	}
	return s.Shares
}

// bulkToken: the other levels of its owner must not leave before a level.
func (f *sharedMode) bulkToken(a *lockBallot) string {
	if f.level {
		return ""
	}
	return string(a.token)
}

func (f *sharedMode) addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64) {
	f.group(a, c)
	c.Args = append(c.Args, string(a.token), m.Decimal(end))
}

// writerEnd is the expiry of the copy to downgrade on a master; "" if there is none. Once
// the ballot is decided, the master's answer may describe the copy of a writer that the
// client has become since.
func (f *sharedMode) writerEnd(a *lockBallot, lane int) string {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	if ends := f.downgrade.ends[lane]; ends > 0 && !a.ballot.Over() {
		return strconv.FormatInt(ends, 10)
	}
	return ""
}

func (f *sharedMode) read(_ *lockBallot, answer pool.Answer) vote {
	if f.refuses(answer.Reply) {
		return vote{no: true}
	}
	r := answer.Reply
	if r.Kind == pool.ReplyArray && answer.Sent && len(r.Items) == 2 {
		f.writers++
		f.downgrade.ends[answer.Lane] = r.Items[1].Int
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
	if !f.level {
		a.undo(lane, c, a.key)
	} else if c == copyMade || c == copyMaybe {
		e := a.call.leases.engine // it lasts as long as any other level
		a.sendUndo(lane, c, a.key, a.token, e.MaxTTL+a.call.request.Linger, releaseWords(e, a.key, a.token, anyExpiry)...)
	}
}

func (f *sharedMode) after(a *lockBallot, v quorum.Result) (ballotMode, error) {
	a.ballot.Lock()
	met := f.writers > 0
	a.ballot.Unlock()
	next := &sharedMode{queueCheck: f.again(), level: f.level, downgradeBallots: f.downgradeBallots, downgrade: f.downgrade}
	if met && f.downgradeBallots < maxDowngradeBallots {
		next.downgradeBallots++
		return next, nil
	}
	_, err := f.queueCheck.after(a, v)
	return next, err
}

// refused: once the downgrade has begun, the outcome is unknown. To the former writer, a plain no would
// mean that it still is the writer.
func (f *sharedMode) refused(a *lockBallot, v quorum.Result) error {
	if f.downgrade.begun.Load() {
		return f.undecided(a, "")
	}
	return f.queueCheck.refused(a, v)
}

func (f *sharedMode) undecided(a *lockBallot, note string) error {
	if !f.downgrade.begun.Load() {
		return f.queueCheck.undecided(a, note)
	}
	err := a.ballot.NoQuorum("the writer is being downgraded and is at most a reader from now on; try again, or release it")
	err.Downgrading = true
	return err
}

func (f *sharedMode) repeats(a *lockBallot) bool {
	return !f.downgrade.begun.Load() && f.queueCheck.repeats(a)
}
