package maxhold

// deadlines.go keeps the deadlines of tokens that clients chose on the masters: a key for each, behind redlockd's
// own prefix, until the deadline or a release. A grant is answered once a quorum has its deadline, and a reader
// asks a quorum, so it finds it. The key may outlast its lock, see held.go.

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

// keptLonger bounds the time for which a deadline is kept when it is over, for clients that extend the lock once more.
const keptLonger = 10 * time.Second

// nameOf returns the key in which the masters keep the deadline of a token.
func (m *MaxHold) nameOf(id engine.LeaseID) string {
	sum := sha1.Sum([]byte(id.Token))
	return m.engine.KeyOf("until:"+hex.EncodeToString(sum[:])+":", id.Key)
}

// writing puts a deadline on a quorum.
type writing struct {
	engine.Plain
	ballot     engine.Ballot
	engine     *engine.Engine
	props      pool.Props
	name, text string
	until      time.Duration
	done       func(error)
}

var _ engine.Question = (*writing)(nil)

// write keeps a deadline of some leases of one hold on the masters; done is called once.
func (m *MaxHold) write(ids []engine.LeaseID, deadline int64, done func(error)) {
	m.met(deadline)
	until := m.engine.Clock.Now() + time.Duration(deadline-m.now(ids[0].DB))*time.Millisecond + keptLonger
	var mu sync.Mutex
	var failed error
	open := len(ids)
	for _, id := range ids {
		m.engine.EnterAlways()
		q := &writing{
			engine: m.engine, props: pool.Props{Key: m.engine.MasterKey(id.Key), SharesKey: true, Sealed: true},
			name: m.nameOf(id), text: strconv.FormatInt(deadline, 10), until: until,
			done: func(err error) {
				mu.Lock()
				failed = cmp.Or(failed, err)
				open--
				last := open == 0
				mu.Unlock()
				if last {
					done(failed)
				}
			},
		}
		q.ballot.Ask(m.engine, nil, m.engine.Pool.Group(id.DB), nil, q)
	}
}

func (w *writing) Props() pool.Props { return w.props }

func (w *writing) Command(s *pool.SendContext, c *pool.Command) bool {
	if s.Now >= w.until {
		return false
	}
	c.Set("SET", w.name, w.text, "PXAT", s.Decimal(quorum.Expiry(s.Time, w.until-s.Now, w.engine.Late)))
	return true
}

func (w *writing) Read(a pool.Answer) engine.Reading {
	if a.Reply.Err == nil && engine.CountsAsVote(a) {
		return engine.Yes
	}
	return engine.Uncounted
}

func (w *writing) Decided(r quorum.Result) {
	w.engine.Leave()
	if r != quorum.Granted {
		w.done(w.ballot.NoQuorum("for how long the lock may be held could not be kept"))
		return
	}
	w.done(nil)
}

// forget drops a deadline, behind a release.
func (m *MaxHold) forget(b *engine.Batch, id engine.LeaseID) {
	name := m.nameOf(id)
	m.engine.Submit(b, m.engine.Pool.Group(id.DB), &engine.Message{
		Plan: pool.Props{Key: m.engine.MasterKey(id.Key), SharesKey: true},
		Write: func(_ *pool.SendContext, c *pool.Command) bool {
			c.Set("DEL", name)
			return true
		},
	})
}

// reading asks a quorum for the deadlines of a token at some keys.
type reading struct {
	engine.Plain
	ballot    engine.Ballot
	engine    *engine.Engine
	names     []string
	deadlines []int64 // the earliest one of each key; 0 = none
	done      func(deadlines []int64, err error)
}

var _ engine.Question = (*reading)(nil)

// read calls done once. The error is *NoQuorum, *Busy or ErrShutdown.
func (m *MaxHold) read(b *engine.Batch, db int, keys []engine.Key, t engine.Token, done func(deadlines []int64, err error)) {
	if err := m.engine.Enter(); err != nil {
		done(nil, err)
		return
	}
	q := &reading{engine: m.engine, deadlines: make([]int64, len(keys)), done: func(deadlines []int64, err error) {
		m.met(latest(deadlines))
		done(deadlines, err)
	}}
	for _, key := range keys {
		q.names = append(q.names, m.nameOf(engine.LeaseID{DB: db, Key: key, Token: t}))
	}
	q.ballot.Ask(m.engine, b, m.engine.Pool.Group(db), nil, q)
}

func (rg *reading) Props() pool.Props { return pool.Props{Sealed: true} }

func (rg *reading) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set("MGET")
	c.Args = append(c.Args, rg.names...)
	return true
}

func (rg *reading) Read(a pool.Answer) engine.Reading {
	if a.Reply.Err != nil || len(a.Reply.Items) != len(rg.names) || !engine.CountsAsVote(a) {
		return engine.Uncounted
	}
	for i, item := range a.Reply.Items {
		if at, err := strconv.ParseInt(item.Str, 10, 64); err == nil && (rg.deadlines[i] == 0 || at < rg.deadlines[i]) {
			rg.deadlines[i] = at
		}
	}
	return engine.Yes
}

func (rg *reading) Decided(r quorum.Result) {
	rg.engine.Leave()
	if r != quorum.Granted {
		rg.done(nil, rg.ballot.NoQuorum(lease.Unchanged))
		return
	}
	rg.done(rg.deadlines, nil)
}

// earliest is the first of some deadlines, latest the last one; 0 = none.
func earliest(deadlines []int64) (at int64) {
	for _, one := range deadlines {
		if one > 0 && (at == 0 || one < at) {
			at = one
		}
	}
	return at
}

func latest(deadlines []int64) (at int64) {
	for _, one := range deadlines {
		at = max(at, one)
	}
	return at
}

// looked remembers, for a while, leases of other daemons that have no deadline. Two of one entry make this
// daemon look once more.
type looked [1024]atomic.Pointer[lookedLease]

type lookedLease struct {
	sum   uint64
	until time.Duration
}

var seed = maphash.MakeSeed()

func sumOfLease(id engine.LeaseID) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, id)
	return h.Sum64()
}

func (l *looked) note(id engine.LeaseID, until time.Duration) {
	sum := sumOfLease(id)
	l[sum%uint64(len(l))].Store(&lookedLease{sum, until})
}

func (l *looked) has(id engine.LeaseID, now time.Duration) bool {
	sum := sumOfLease(id)
	one := l[sum%uint64(len(l))].Load()
	return one != nil && one.sum == sum && now < one.until
}

// overdue remembers leases that were reported.
type overdue [256]atomic.Uint64

func (o *overdue) first(id engine.LeaseID) bool {
	sum := sumOfLease(id)
	return o[sum%uint64(len(o))].Swap(sum) != sum
}
