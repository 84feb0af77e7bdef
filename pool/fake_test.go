// fakeMaster is a master in memory; its link fails when a test sets it to.

package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
)

const epoch = 1_800_000_000_000_000 // µs since 1970 at the hand clock's 0

var errCut = errors.New("connection reset by the test")

// fakeMaster knows the few commands of a lane. Its fields are the test's to
// change while nothing is on its way.
type fakeMaster struct {
	clock   *handClock
	runID   string
	ahead   time.Duration // of the hand clock
	blessed bool          // its first incarnation is old enough to vote
	print   string        // of the settings, which it carries from the beginning
	texts   string        // of the configuration
	strict  bool          // it admits nobody with another configuration than it carries

	mu        sync.Mutex
	identity  string // "" = blank
	register  int64
	records   map[string]int64 // of other masters' registers
	dials     int
	links     []*fakeLink
	executed  [][]string
	forbidden error // instead of a connection

	takes    time.Duration                       // an exchange lasts this long
	hangs    bool                                // exchanges do not end before their link
	waits    chan struct{}                       // exchanges begin when it is closed
	held     chan struct{}                       // answers wait in the socket until it is closed
	unread   bool                                // one does
	cutAfter bool                                // commands are executed and the answers lost
	cut      bool                                // commands are lost
	tamper   func(args []string, r *Reply)       // falsifies an answer
	resize   func(replies []Reply) []Reply       // loses or invents answers
	between  func(index int, commands []Command) // something happens in front of a command
	wrap     func(*fakeLink) Link                // what a dial returns; nil = the link itself
}

type fakeLink struct {
	master *fakeMaster
	db     int
	id     int64
	once   sync.Once
	over   chan struct{}
}

var _ Link = (*fakeLink)(nil)

func (m *fakeMaster) dial(db int) (Link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials++
	if m.forbidden != nil {
		return nil, m.forbidden
	}
	l := &fakeLink{master: m, db: db, id: int64(m.dials), over: make(chan struct{})}
	m.links = append(m.links, l)
	if m.wrap != nil {
		return m.wrap(l), nil
	}
	return l, nil
}

func (l *fakeLink) Unread() bool {
	l.master.mu.Lock()
	defer l.master.mu.Unlock()
	return l.master.unread
}

func (l *fakeLink) Close() { l.once.Do(func() { close(l.over) }) }

func (l *fakeLink) lost(commands []Command) []Reply {
	out := make([]Reply, len(commands))
	for i := range out {
		out[i] = Reply{Kind: ReplyError, Err: errCut}
	}
	return out
}

// hang lasts until the link is closed or, as a real link's time-out would have
// it, until the clock has moved or nothing else is left to happen.
func (l *fakeLink) hang() {
	const timeout = time.Second
	moved := make(chan struct{})
	defer l.master.clock.AfterFunc(timeout, func() { close(moved) }).Stop()
	select {
	case <-l.over:
	case <-moved:
	case <-time.After(timeout):
	}
}

func (l *fakeLink) Exchange(commands []Command, replies []Reply) []Reply {
	m := l.master
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-l.over:
		return l.lost(commands)
	default:
	}
	if m.hangs {
		m.mu.Unlock()
		l.hang()
		m.mu.Lock()
		return l.lost(commands)
	}
	if waits := m.waits; waits != nil {
		m.mu.Unlock()
		<-waits
		m.mu.Lock()
	}
	if m.cut {
		return l.lost(commands)
	}
	replies = replies[:0]
	for i := range commands {
		if m.between != nil {
			m.between(i, commands)
		}
		r := m.executeLocked(l, commands[i].Args)
		if m.tamper != nil {
			m.tamper(commands[i].Args, &r)
		}
		replies = append(replies, r)
	}
	m.clock.pass(m.takes)
	if held := m.held; held != nil {
		m.unread = true
		m.mu.Unlock()
		select {
		case <-held:
		case <-l.over:
		}
		m.mu.Lock()
		m.unread = false
	}
	if m.cutAfter {
		return l.lost(commands)
	}
	if m.resize != nil {
		replies = m.resize(replies)
	}
	return replies
}

func (m *fakeMaster) micros() int64 { return epoch + clock.Micros(m.clock.Now()+m.ahead) }

func text(s string) Reply          { return Reply{Kind: ReplyString, Str: s} }
func number(n int64) Reply         { return Reply{Kind: ReplyInt, Int: n} }
func list(items ...Reply) Reply    { return Reply{Kind: ReplyArray, Items: items} }
func decimal(n int64) Reply        { return text(strconv.FormatInt(n, 10)) }
func refusal(message string) Reply { return Reply{Kind: ReplyError, Err: MasterError(message)} }

func (m *fakeMaster) executeLocked(l *fakeLink, args []string) Reply {
	m.executed = append(m.executed, append([]string(nil), args...))
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "CLIENT ID":
		return number(l.id)
	case "INFO", "INFO server":
		return text(goodInfo("7.0.15", m.runID))
	case "CONFIG GET":
		return list()
	case "CLIENT KILL":
		for _, other := range m.links {
			if strconv.FormatInt(other.id, 10) == args[3] {
				other.Close()
			}
		}
		return number(1)
	case "SCRIPT LOAD":
		return text("sha")
	case "TIME":
		us := m.micros()
		return list(decimal(us/1_000_000), decimal(us%1_000_000))
	}
	switch args[0] {
	case "EVAL":
		return m.admitLocked(args)
	case "HGET":
		if strings.HasSuffix(args[2], "\nprocesses") {
			return text(m.runID + "=1;")
		}
		return text("1\n" + m.texts)
	case "ZRANGE": // what it lost it carried: that it is blank is for the tests of real masters
		return list(text("retired " + strings.Replace(m.print, "/db=0/", fmt.Sprintf("/db=%d/", l.db), 1)))
	case "ZSCORE":
		if args[1] == "redlockd:acked" {
			if score, ok := m.records[args[2]]; ok {
				return decimal(score)
			}
			return Reply{}
		}
		if m.identity == "" || args[2] != m.identity {
			return Reply{}
		}
		return decimal(m.register)
	case "ZADD":
		if args[1] == "redlockd:acked" {
			return m.fileLocked(args[3:])
		}
		raise, _ := strconv.ParseInt(args[5], 10, 64)
		if args[6] != m.identity || raise <= m.register {
			return number(0)
		}
		m.register = raise
		return number(1)
	case "ZERO":
		return number(0)
	}
	return text("OK")
}

// fileLocked takes scores and members.
func (m *fakeMaster) fileLocked(pairs []string) Reply {
	for i := 0; i+1 < len(pairs); i += 2 {
		if m.records == nil {
			m.records = map[string]int64{}
		}
		score, _ := strconv.ParseInt(pairs[i], 10, 64)
		m.records[pairs[i+1]] = max(m.records[pairs[i+1]], score)
	}
	return number(0)
}

// admitLocked keeps an incarnation of this process unless it is to be invalidated.
func (m *fakeMaster) admitLocked(args []string) Reply {
	id, print, invalidate := args[8], args[9], args[10]
	floor, _ := strconv.ParseInt(args[12], 10, 64)
	us := m.micros()
	incarnation, err := admission.ParseIdentity(m.identity)
	if m.strict && err == nil && incarnation.Fingerprint != print {
		return list(text("FINGERPRINT"), text(incarnation.Fingerprint))
	}
	if err != nil || incarnation.RunID != m.runID || m.identity == invalidate {
		base := us
		if m.blessed {
			base, m.blessed = 0, false
		}
		m.identity = fmt.Sprintf("%s %s %d 0 %s", m.runID, id, base, print)
		m.register = max(m.register, floor, us+clock.Micros(admission.MaxSkew))
	}
	return list(text("OK"), text(m.identity), decimal(us), decimal(m.register), text(""))
}

// goodInfo is the part of INFO that a lane reads.
func goodInfo(version, runID string) string {
	return "# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\nrun_id:" + runID +
		"\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\naof_rewrite_in_progress:0\r\n" +
		"aof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n# Replication\r\nrole:master\r\n"
}

// stage is a pool on fake masters under a hand clock.
type stage struct {
	t       testing.TB
	clock   *handClock
	masters []*fakeMaster
	byName  map[string]*fakeMaster
	pool    *Pool
	group   *Group
}

// onStage runs a test on n masters that all vote.
func onStage(t *testing.T, n int, o Options, play func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, n, o)
		defer s.pool.Close()
		play(s)
	})
}

func newStage(t testing.TB, n int, o Options, prepare ...func(m *fakeMaster, i int)) *stage {
	t.Helper()
	s := &stage{t: t, clock: newHandClock(), byName: map[string]*fakeMaster{}}
	for i := range n {
		name := string(rune('a' + i))
		m := s.newMaster(name)
		for _, f := range prepare {
			f(m, i)
		}
		s.masters = append(s.masters, m)
		o.Masters = append(o.Masters, named(name))
	}
	o.Clock = s.clock
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	o.Dialer = func(_ context.Context, m Master, db int) (Link, error) { return s.byName[m.Name].dial(db) }
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	first := admission.StoredConfiguration{Now: p.options.Configuration(1), InForce: true}
	for name, m := range s.byName {
		m.print, m.texts = p.options.Fingerprint(0, first.Now.Mark(), name), first.Texts()
	}
	s.pool, s.group = p, p.Group(0)
	synctest.Wait()
	return s
}

// newMaster is one more server, reachable under its name.
func (s *stage) newMaster(name string) *fakeMaster {
	m := &fakeMaster{clock: s.clock, runID: fmt.Sprintf("%040x", len(s.byName)+1), blessed: true}
	s.byName[name] = m
	return m
}

func named(name string) Master { return Master{Name: name, Network: "tcp", Address: name + ":6379"} }

// change alters a master between two flushes.
func (s *stage) change(lane int, f func(m *fakeMaster)) {
	m := s.masters[lane]
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// send queues operations on all masters and waits until everything has come to rest.
func (s *stage) send(ops ...*asker) {
	var b Batch
	for _, op := range ops {
		b.Add(s.group, op)
	}
	b.Send()
	synctest.Wait()
}

// vote sends one acquire and returns what the master in this lane said.
func (s *stage) vote(lane int) Answer {
	s.t.Helper()
	op := acquiring("key")
	s.send(op)
	return op.only(s.t, lane)
}

func (s *stage) state(lane int) string { return s.group.Statuses()[lane].State }

func (s *stage) invalidated() int64 { return s.group.Counters().Invalidated }

// asker is an operation that notes what it is told.
type asker struct {
	plan   Props
	words  []string
	skip   bool // its time is up: no command
	panics bool // in Command

	mu      sync.Mutex
	fence   int64
	among   int // masters that the group had when it was queued
	answers map[int][]Answer
}

var _ Operation = (*asker)(nil)

// acquiring asks as an acquire does, releasing as a release does.
func acquiring(key string) *asker {
	return &asker{plan: Props{Key: key, Exclusive: true, Sealed: true}, words: []string{"SET", key}}
}

func releasing(key string) *asker {
	return &asker{plan: Props{Key: key, SealZero: true}, words: []string{"DEL", key}}
}

func (a *asker) Props() Props               { return a.plan }
func (a *asker) Propose(fence int64, n int) { a.fence, a.among = fence, n }

func (a *asker) Command(_ *SendContext, c *Command) bool {
	if a.panics {
		panic("an operation's own mistake")
	}
	if !a.skip {
		c.Set(a.words...)
	}
	return !a.skip
}

func (a *asker) Answer(answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers == nil {
		a.answers = map[int][]Answer{}
	}
	a.answers[answer.Lane] = append(a.answers[answer.Lane], answer)
}

// only is the one answer of a lane.
func (a *asker) only(t testing.TB, lane int) Answer {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers[lane]) != 1 {
		t.Fatalf("lane %d answered %d times, want once: %+v", lane, len(a.answers[lane]), a.answers[lane])
	}
	return a.answers[lane][0]
}

func (a *asker) unanswered(lane int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.answers[lane]) == 0
}
