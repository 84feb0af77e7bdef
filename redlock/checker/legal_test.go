package checker

// Legal histories by the thousand: clients of one perfect lock, simulated under
// a seed, with late answers, lost answers and requests that take effect after
// their client gave up. What happens in the lock is exact; what the clients see
// is as blurred as in life.

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

type happening struct {
	at    int
	order int
	do    func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a[i].at, a[j].at), cmp.Compare(a[i].order, a[j].order)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// perfectLock is one key. Milliseconds.
type perfectLock struct {
	holder string
	until  int // when the lock itself forgets; never before the deadline in the reply
}

// world is the simulation: a coarse clock makes many instants coincide.
type world struct {
	random *rand.Rand
	agenda agenda
	now    int
	ticket int
	locks  map[string]*perfectLock
	fence  int64
	h      History
	tokens map[string][]string // in use, by key
	serial int
}

func (w *world) at(t int, do func()) {
	w.ticket++
	heap.Push(&w.agenda, happening{t, w.ticket, do})
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// legalHistory simulates clients until events calls were made.
func legalHistory(seed uint64, clients, events int) History {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), locks: map[string]*perfectLock{}, tokens: map[string][]string{}}
	for c := range clients {
		w.at(w.random.IntN(10), func() { w.idle(c) })
	}
	for len(w.h) < events {
		next := heap.Pop(&w.agenda).(happening)
		w.now = next.at
		next.do()
	}
	for i := range w.h { // calls that the end cut short
		if e := &w.h[i]; e.Complete == Never {
			e.Outcome, e.Validity, e.Fence, e.Released = Unknown, 0, 0, false
		}
	}
	return w.h
}

// idle: a client without a lock asks for one, or meddles with another's token.
func (w *world) idle(client int) {
	key := []string{"k", "j"}[w.random.IntN(2)]
	if known := w.tokens[key]; len(known) > 0 && w.chance(10) {
		token := known[max(0, len(known)-1-w.random.IntN(4))]
		op := []OpKind{Release, Extend, Acquire}[w.random.IntN(3)]
		w.ask(client, op, key, token, func(CallRecord) { w.idle(client) })
		return
	}
	w.serial++
	token := fmt.Sprintf("t%d", w.serial)
	w.tokens[key] = append(w.tokens[key], token)
	w.ask(client, Acquire, key, token, func(e CallRecord) {
		if e.Outcome == OK || e.Outcome == Unknown && w.chance(50) {
			w.holding(client, e)
			return
		}
		w.idle(client)
	})
}

// holding: a client that has a lock, or believes so, goes on.
func (w *world) holding(client int, e CallRecord) {
	again := func(e CallRecord) {
		if e.Outcome == No {
			w.idle(client)
			return
		}
		w.holding(client, e)
	}
	switch dice := w.random.IntN(100); {
	case dice < 30:
		w.ask(client, Extend, e.Key, e.Token, again)
	case dice < 40:
		w.ask(client, Acquire, e.Key, e.Token, again)
	case dice < 85:
		w.ask(client, Release, e.Key, e.Token, func(e CallRecord) {
			if e.Outcome == Unknown && w.chance(60) {
				w.ask(client, Release, e.Key, e.Token, func(CallRecord) { w.idle(client) })
				return
			}
			w.idle(client)
		})
	default:
		w.at(w.now+60, func() { w.idle(client) })
	}
}

// ask sends one request: it leaves after a pause, takes effect, is answered.
func (w *world) ask(client int, op OpKind, key, token string, then func(CallRecord)) {
	w.at(w.now+w.random.IntN(12), func() {
		index := len(w.h)
		w.h = append(w.h, CallRecord{Client: client, Op: op, Key: key, Token: token, Invoke: ms(w.now), Complete: Never})
		arrives := w.now + w.random.IntN(4)
		answered := arrives + w.random.IntN(4)
		if w.chance(2) {
			answered += 50
		}
		lost := w.chance(8)
		if lost && w.chance(30) {
			arrives = answered + w.random.IntN(40) // after the client gave up
		}
		if !lost || w.chance(60) {
			w.at(arrives, func() { w.effect(index, lost) })
		}
		w.at(max(answered, w.now+1), func() {
			e := &w.h[index]
			e.Complete = ms(w.now)
			if lost {
				e.Outcome, e.Validity, e.Fence, e.Released = Unknown, 0, 0, false
			} else if e.Outcome == OK && e.Op != Release {
				e.Validity -= e.Complete
			}
			then(*e)
		})
	})
}

// effect lets the lock decide. Validity is the deadline until the answer comes.
func (w *world) effect(index int, lost bool) {
	e := w.h[index]
	lock := w.locks[e.Key]
	if lock == nil {
		lock = &perfectLock{}
		w.locks[e.Key] = lock
	}
	if w.now >= lock.until {
		lock.holder = ""
	}
	mine := lock.holder == e.Token
	deadline := int(e.Invoke/time.Millisecond) + 20 + w.random.IntN(30)
	switch {
	case e.Op == Release:
		e.Outcome, e.Released = OK, mine
		if mine {
			lock.holder = ""
		}
	case mine || e.Op == Acquire && lock.holder == "" && !w.chance(3):
		if !mine {
			lock.until = 0
		}
		lock.holder, lock.until = e.Token, max(lock.until, deadline+w.random.IntN(5))
		e.Outcome, e.Validity = OK, ms(deadline)
		if w.fence++; e.Op == Acquire && e.Client != 0 {
			e.Fence = w.fence // client 0 asks the masters without redlockd
		}
	default:
		e.Outcome = No
	}
	if !lost {
		w.h[index] = e
	}
}

func TestCheck_AcceptsWhatAPerfectLockAnswers(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(150) {
		h := legalHistory(seed, 2+int(seed%5), 120)
		if err := Check(h); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, e := range h {
			seen[fmt.Sprint(e.Op, " ", e.Outcome, " ", e.Released)]++
		}
	}
	for _, kind := range []string{
		"acquire ok false", "acquire no false", "acquire unknown false",
		"extend ok false", "extend no false", "extend unknown false",
		"release ok true", "release ok false", "release unknown false",
	} {
		if seen[kind] < 100 {
			t.Errorf("only %d calls of the kind %q: the histories are too tame", seen[kind], kind)
		}
	}
	if err := Check(legalHistory(1, 5, 30_000)); err != nil {
		t.Fatal(err)
	}
}
