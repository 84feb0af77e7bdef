package pool

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// distantLink is a link to a fake master that executes at once and whose answers a test lets
// through one by one, in any order.
type distantLink struct {
	*fakeLink
	mu      sync.Mutex
	parked  []chan struct{} // of the exchanges that wait for their answers
	delayed bool            // answers wait
}

var _ WindowLink = (*distantLink)(nil)

func (l *distantLink) ExchangeInWindow(commands []Command, replies []Reply, onSent func()) []Reply {
	out := l.fakeLink.Exchange(commands, replies)
	onSent()
	l.mu.Lock()
	if !l.delayed {
		l.mu.Unlock()
		return out
	}
	answer := make(chan struct{})
	l.parked = append(l.parked, answer)
	l.mu.Unlock()
	select {
	case <-answer:
		return out
	case <-l.over:
		return l.lost(commands)
	}
}

// windowStage is a stage whose first master is distant.
type windowStage struct {
	*stage
	link *distantLink
	lane *lane
}

const distantTrip = 10 * time.Millisecond

func onWindowStage(t *testing.T, play func(*windowStage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &windowStage{}
		w.stage = newStage(t, 3, Options{}, func(m *fakeMaster, i int) {
			if i == 0 {
				m.wrap = func(l *fakeLink) Link {
					w.link = &distantLink{fakeLink: l}
					return w.link
				}
			}
		})
		defer w.pool.Close()
		w.lane = w.group.lanes[0]
		w.group.mu.Lock()
		w.lane.conn.trips = shortestTrip{present: distantTrip, since: w.clock.Now()}
		w.group.mu.Unlock()
		w.link.delayed = true
		play(w)
		w.link.mu.Lock()
		w.link.delayed = false
		for range w.link.parked {
			w.link.mu.Unlock()
			w.answer(0)
			w.link.mu.Lock()
		}
		w.link.mu.Unlock()
	})
}

// answer lets the answer of the i-th flush that waits for one through.
func (w *windowStage) answer(i int) {
	w.t.Helper()
	w.link.mu.Lock()
	if i >= len(w.link.parked) {
		w.t.Fatalf("%d flushes are under way, no %d", len(w.link.parked), i)
	}
	close(w.link.parked[i])
	w.link.parked = slices.Delete(w.link.parked, i, i+1)
	w.link.mu.Unlock()
	synctest.Wait()
}

func (w *windowStage) underWay() int {
	w.link.mu.Lock()
	defer w.link.mu.Unlock()
	return len(w.link.parked)
}

// sendApart sends operations, each in a flush of its own.
func (w *windowStage) sendApart(ops ...*asker) {
	for _, op := range ops {
		w.send(op)
		w.clock.advance(distantTrip / spacingShare)
	}
}

// executed are the first words of what the master was sent since the last call, without seals.
func (w *windowStage) executed() (words []string) {
	w.change(0, func(m *fakeMaster) {
		for _, args := range m.executed {
			if !slices.Contains([]string{"ZSCORE", "ZADD", "TIME", "INFO", "CONFIG", "PUBSUB", "CLIENT"}, args[0]) {
				words = append(words, strings.Join(args, " "))
			}
		}
		m.executed = nil
	})
	return words
}

func TestWindow_ARequestIsSentBehindThoseThatAreUnderWay(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		first, second, third := acquiring("a"), acquiring("b"), acquiring("c")
		w.send(first)
		w.send(second)
		w.send(third)
		if got := w.underWay(); got != 1 {
			t.Fatalf("%d flushes under way at once, want one: the others wait for company", got)
		}
		w.clock.advance(distantTrip / spacingShare)
		if got := w.underWay(); got != 2 {
			t.Fatalf("%d flushes under way, want two: what has waited leaves together", got)
		}
		if !first.unanswered(0) || !second.unanswered(0) {
			t.Fatal("answered before the master has")
		}
		w.answer(1) // its task notices first
		if !second.unanswered(0) {
			t.Fatal("the second flush is settled in front of the first one")
		}
		w.answer(0)
		a, b, c := first.only(t, 0), second.only(t, 0), third.only(t, 0)
		if !a.Seal.Good || !b.Seal.Good || !c.Seal.Good {
			t.Fatalf("%+v, %+v, %+v, want good seals", a.Seal, b.Seal, c.Seal)
		}
		if b.Seal.Old < a.Seal.Top || c.Seal.Top <= second.fence || first.fence > a.Seal.Top || second.fence <= b.Seal.Old {
			t.Errorf("(%d, %d] and (%d, %d] for the fences %d and %d, want one interval behind the other", a.Seal.Old, a.Seal.Top, b.Seal.Old, b.Seal.Top, first.fence, second.fence)
		}
	})
}

func TestWindow_ANearMasterHasOneFlushUnderWay(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		w.group.mu.Lock()
		w.lane.conn.trips = shortestTrip{present: minWindowTrip - 1, since: w.clock.Now()}
		w.group.mu.Unlock()
		waits := make(chan struct{})
		w.change(0, func(m *fakeMaster) { m.waits, m.executed = waits, nil })
		w.sendApart(acquiring("a"), acquiring("b"))
		w.change(0, func(m *fakeMaster) { m.waits = nil })
		w.group.mu.Lock()
		got, queued := len(w.lane.conn.flushes), len(w.lane.queue.entries)
		w.group.mu.Unlock()
		if got != 1 || queued != 1 {
			t.Errorf("%d flushes under way and %d operations queued, want one each", got, queued)
		}
		close(waits)
		synctest.Wait()
	})
}

func TestWindow_IsBounded(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		var all []*asker
		for i := range maxWindow + 5 {
			all = append(all, acquiring(string(rune('a'+i))))
		}
		w.sendApart(all...)
		if got := w.underWay(); got != maxWindow {
			t.Fatalf("%d flushes under way, want %d", got, maxWindow)
		}
		w.answer(0)
		if got := w.underWay(); got != maxWindow {
			t.Errorf("%d flushes under way after an answer, want %d", got, maxWindow)
		}
		for w.underWay() > 0 {
			w.answer(0)
		}
		for _, op := range all {
			if a := op.only(t, 0); !a.Seal.Good {
				t.Errorf("%+v, want a vote", a.Seal)
			}
		}
	})
}

// The oldest flush opens the breaker, once for all that is under way; the connection continues
// when all of it was answered.
func TestWindow_TheOldestFlushDecidesWhetherTheMasterStandsStill(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		first, second, behind := acquiring("a"), acquiring("b"), acquiring("c")
		began := w.clock.Now()
		w.send(first)
		w.clock.advance(w.pool.options.MasterTimeout * 6 / 10)
		w.send(second)
		w.clock.advance(began + w.pool.options.MasterTimeout - w.clock.Now())
		for _, op := range []*asker{first, second} {
			if a := op.only(t, 0); !a.Sent || !errors.Is(a.Reply.Err, errStalled) {
				t.Fatalf("%+v, want unknown a master timeout after the oldest was sent", a)
			}
		}
		w.executed()
		for w.underWay() > 1 {
			w.answer(0)
		}
		w.send(behind)
		if a := behind.only(t, 0); a.Sent {
			t.Errorf("%+v while a flush is unanswered, want not sent", a)
		}
		w.answer(0)
		w.link.delayed = false
		w.answer(0) // the heartbeat after the pause
		if a := w.vote(0); !a.Seal.Good || w.masters[0].dials != 1 {
			t.Errorf("%+v over %d connections, want a vote on the same one", a.Seal, w.masters[0].dials)
		}
		first.only(t, 0)
		second.only(t, 0)
	})
}

func TestWindow_ALostConnectionAnswersAllThatIsUnderWay(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		first, second, queued := acquiring("a"), acquiring("b"), acquiring("c")
		w.sendApart(first)
		w.send(second)
		w.send(queued)
		w.lane.conn.fail(errCut)
		synctest.Wait()
		a, b, c := first.only(t, 0), second.only(t, 0), queued.only(t, 0)
		if !a.Sent || !b.Sent || c.Sent || a.Seal.Good || b.Seal.Good {
			t.Errorf("%+v, %+v, %+v, want two that may have been executed and one that was not sent", a, b, c)
		}
	})
}

// A register that falls between two flushes of a window has lost votes that were given.
func TestWindow_ARegisterThatFallsInsideEndsTheIncarnation(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		first, second := acquiring("a"), acquiring("b")
		w.send(first)
		w.change(0, func(m *fakeMaster) { m.register -= 5_000 })
		before := w.invalidated()
		w.clock.advance(distantTrip / spacingShare)
		w.send(second)
		w.answer(0)
		if a := first.only(t, 0); !a.Seal.Good {
			t.Fatalf("%+v, want a vote", a.Seal)
		}
		w.answer(0)
		if b := second.only(t, 0); b.Seal.Good || w.invalidated() == before {
			t.Errorf("%+v, want no vote and an incarnation that has ended", b.Seal)
		}
	})
}

// An answer of 0 counts under a seal behind it, which may be on its way already.
func TestWindow_AnAnswerOfZeroCountsUnderTheSealBehindIt(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		release, acquire := releasing("a"), acquiring("b")
		release.words = []string{"ZERO"}
		w.sendApart(release, acquire)
		w.change(0, func(m *fakeMaster) { m.executed = nil })
		w.answer(0)
		if !release.unanswered(0) {
			t.Fatal("answered without a seal")
		}
		w.clock.advance(distantTrip / spacingShare)
		if got := w.underWay(); got != 1 {
			t.Errorf("%d flushes under way, want the one with the seal alone", got)
		}
		w.answer(0)
		if r, a := release.only(t, 0), acquire.only(t, 0); !r.Seal.Good || r.Seal != a.Seal {
			t.Errorf("%+v, want the seal behind it %+v", r.Seal, a.Seal)
		}
	})
}

// scripted is an acquire or release by a script.
func scripted(op *asker, key, sha string) *tokened {
	op.words = []string{"EVALSHA", sha, "1", key}
	return &tokened{asker: op, token: "token of " + key}
}

// tokened is an asker with a token.
type tokened struct {
	*asker
	token string
}

var _ BulkOperation = (*tokened)(nil)

func (t *tokened) BulkToken() string                      { return t.token }
func (t *tokened) AddToBulk(*SendContext, *BulkCall) bool { return false }

func (w *windowStage) sendOperation(op Operation) {
	var b Batch
	b.Add(w.group, op)
	b.Send()
	synctest.Wait()
	w.clock.advance(distantTrip / spacingShare)
}

// With lost scripts nothing is sent until the window is empty; then what was not executed is sent
// again in its order, unless something of its token is executed before it.
func TestWindow_WhatLostItsScriptIsSentAgainInItsOrder(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		lost := func(args []string, r *Reply) {
			if args[0] == "EVALSHA" {
				*r = refusal("NOSCRIPT No matching script")
			}
		}
		w.change(0, func(m *fakeMaster) { m.tamper = lost })
		one, overtaken, two := scripted(acquiring("one"), "one", "sha1"), scripted(acquiring("key"), "key", "sha2"), scripted(acquiring("two"), "two", "sha3")
		release := &tokened{asker: releasing("key"), token: overtaken.token}
		w.sendOperation(one)
		w.sendOperation(overtaken)
		w.sendOperation(release)
		w.sendOperation(two)
		w.change(0, func(m *fakeMaster) { m.tamper = nil })
		w.executed()
		for i := range 3 {
			w.answer(0)
			if got := w.executed(); len(got) > 0 {
				t.Fatalf("%q is sent after %d answers, while others are under way", got, i+1)
			}
		}
		w.answer(0)
		want := []string{"EVALSHA sha1 1 one", "EVALSHA sha3 1 two"}
		got := slices.DeleteFunc(w.executed(), func(words string) bool { return strings.HasPrefix(words, "SCRIPT") })
		if !slices.Equal(got, want) {
			t.Errorf("sent again: %q, want %q", got, want)
		}
		if a := overtaken.only(t, 0); !a.Reply.Begins("NOSCRIPT") {
			t.Errorf("%+v, want the error: a release of its token is executed already", a.Reply)
		}
		w.answer(0)
		one.only(t, 0)
		two.only(t, 0)
		release.only(t, 0)
	})
}

// A flush that was being written when the connection stalled, or when something came back to be sent
// again, is not sent.
func TestWindow_WhatIsBeingWrittenMeanwhileIsNotSent(t *testing.T) {
	onWindowStage(t, func(w *windowStage) {
		w.group.mu.Lock()
		c := w.lane.conn
		stalled, returned := acquiring("stalled"), acquiring("returned")
		f := &flush{exchange: exchange{entries: queueOf(returned)}}
		c.building, c.returned = f, true
		w.group.mu.Unlock()
		if c.startFlush(f) || len(w.lane.queue.entries) != 1 {
			t.Errorf("sent, or %d queued, want it back in the queue", len(w.lane.queue.entries))
		}
		w.group.mu.Lock()
		w.lane.queue.take()
		f = &flush{exchange: exchange{entries: queueOf(stalled)}}
		c.building, c.returned, c.stalled = f, false, true
		w.group.mu.Unlock()
		if c.startFlush(f) || stalled.only(t, 0).Sent {
			t.Error("sent on a connection that has stalled")
		}
		c.stalled = false
	})
}
