package redlock

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

func pureID(key string) Lease { return Lease{DB: 0, Key: Key(key), Token: "token"} }

func TestLeases_ALaterEndWinsAndCopiesAddUp(t *testing.T) {
	l := newLeases(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10, gone: 20, copies: 0b001}, 0)
	l.note(pureID("a"), leaseRecord{until: 5, gone: 30, copies: 0b100}, 1)
	if got, ok := l.find(pureID("a")); !ok || got != (leaseRecord{until: 10, gone: 30, copies: 0b101, number: 1}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, other := range []Lease{{DB: 1, Key: "a", Token: "token"}, {DB: 0, Key: "b", Token: "token"}, {DB: 0, Key: "a", Token: "other"}} {
		if got, ok := l.find(other); ok {
			t.Errorf("%+v is %+v", other, got)
		}
	}
}

func TestLeases_WhatIsDroppedIsGoneFromBothGenerations(t *testing.T) {
	l := newLeases(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10}, 0)
	l.note(pureID("b"), leaseRecord{until: 1}, l.period+1) // a is old now
	if got, ok := l.drop(pureID("a")); !ok || got.until != 10 {
		t.Errorf("dropped %+v, %v", got, ok)
	}
	if _, ok := l.drop(pureID("a")); ok {
		t.Error("dropped twice")
	}
	if _, ok := l.find(pureID("a")); ok {
		t.Error("found after it was dropped")
	}
}

func TestLeases_AreKeptForAWholePeriodAndForgottenAfterTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	l := newLeases(time.Minute)
	noted, now := map[string]time.Duration{}, time.Duration(0)
	for i := range 5000 {
		now += time.Duration(r.Int64N(int64(time.Second)))
		key := "k" + string(rune(i))
		l.note(pureID(key), leaseRecord{until: now + time.Minute}, now)
		noted[key] = now
	}
	for key, at := range noted {
		_, ok := l.find(pureID(key))
		if age := now - at; age <= l.period && !ok {
			t.Errorf("forgotten after %v of %v", age, l.period)
		} else if age > 2*l.period+2*time.Second && ok {
			t.Errorf("known after %v, twice the period is %v", age, 2*l.period)
		}
	}
	if n := len(l.current) + len(l.previous); n > 400 {
		t.Errorf("%d leases are kept, the last two periods had some 260", n)
	}
}

func TestLeases_ARepeatMovesALeaseIntoTheCurrentGeneration(t *testing.T) {
	l := newLeases(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10}, 0)
	l.note(pureID("a"), leaseRecord{until: 20}, l.period+1)
	l.note(pureID("b"), leaseRecord{}, 2*(l.period+1))
	if got, ok := l.find(pureID("a")); !ok || got.until != 20 {
		t.Errorf("%+v, %v, want the repeat to be remembered", got, ok)
	}
}

func TestTokenQueue_AnAcquireHoldsBackWhatFollowsUntilItIsOver(t *testing.T) {
	var list perTokenQueue
	var order []string
	id := pureID("a")
	say := func(what string, holds bool) queuedOperation {
		return queuedOperation{holds: holds, run: func(b *Batch) {
			if b != nil {
				what += " in a batch"
			}
			order = append(order, what)
		}}
	}
	var batch Batch
	list.enter(id, &batch, say("release", false))
	list.enter(id, &batch, say("acquire", true))
	list.enter(id, &batch, say("extend", false))
	list.enter(id, &batch, say("release", false))
	list.enter(id, &batch, say("again", true))
	list.enter(id, &batch, say("last", false))
	list.enter(pureID("b"), &batch, say("other", false))
	if list.idle() {
		t.Error("idle with an acquire in flight")
	}
	want := "release in a batch,acquire in a batch,other in a batch"
	if got := strings.Join(order, ","); got != want {
		t.Errorf("at once: %s, want %s", got, want)
	}
	list.leave(id)
	// What was deferred must not touch a batch that has left long ago.
	if got := strings.Join(order, ","); got != want+",extend,release,again" {
		t.Errorf("after the acquire: %s", got)
	}
	list.leave(id)
	if got := strings.Join(order, ","); got != want+",extend,release,again,last" || !list.idle() {
		t.Errorf("in the end: %s, idle %v", got, list.idle())
	}
}

func TestTokenQueue_AcquiresOfOneTokenAreSerialHoweverManyThereAre(t *testing.T) {
	var list perTokenQueue
	var mu sync.Mutex
	var wg sync.WaitGroup
	running, done := 0, 0
	id := pureID("a")
	const callers = 200
	for range callers {
		wg.Add(1)
		go list.enter(id, nil, queuedOperation{holds: true, run: func(*Batch) {
			mu.Lock()
			running++
			if running > 1 {
				t.Errorf("%d acquires of one token at once", running)
			}
			mu.Unlock()
			go func() {
				defer wg.Done()
				mu.Lock()
				running--
				done++
				mu.Unlock()
				list.leave(id)
			}()
		}})
	}
	wg.Wait()
	if done != callers || !list.idle() {
		t.Errorf("%d of %d ran, idle %v", done, callers, list.idle())
	}
}

func TestToken_IsTwentySevenSafeCharactersAndNeverTheSame(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seen := make(map[Token]bool, 100_000)
	used := map[rune]bool{}
	for range 100_000 {
		token := NewToken()
		if len(token) != 27 || seen[token] {
			t.Fatalf("token %q: %d characters, repeated %v", token, len(token), seen[token])
		}
		seen[token] = true
		for _, c := range token {
			used[c] = true
		}
	}
	for c := range used {
		if !strings.ContainsRune(alphabet, c) {
			t.Errorf("%q in a token", c)
		}
	}
	if len(used) != len(alphabet) {
		t.Errorf("%d different characters, want %d", len(used), len(alphabet))
	}
}

func TestErrors_StateWhatWasWrongAndWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"2 of 5 masters answered, 3 needed: b=10.0.0.2:6379 down (connection refused), c dialing; the lease is unchanged": &NoQuorum{
			Answered: 2, Needed: 3, Total: 5, Missing: []string{"b=10.0.0.2:6379 down (connection refused)", "c dialing"}, Note: "the lease is unchanged"},
		"0 of 3 masters answered, 2 needed": &NoQuorum{Needed: 2, Total: 3},
		"the quorum answered after 95 ms, which leaves nothing of a ttl of 90 ms; the lease's old validity stands, use a longer ttl": &Expired{
			Elapsed: 95 * time.Millisecond, TTL: 90 * time.Millisecond, Extension: true},
		"the quorum answered after 95 ms, which leaves nothing of a ttl of 90 ms; what was taken is given back, use a longer ttl": &Expired{
			Elapsed: 95 * time.Millisecond, TTL: 90 * time.Millisecond},
		"operations in flight: limit 7 reached (--max-operations); nothing was done, try later": &Busy{
			What: "operations in flight", Limit: 7, Option: "--max-operations"},
		"2 of 5 masters are durable, 3 needed: a has appendonly no, b has appendfsync everysec; set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no on them (one that has written without them must be restarted), or accept that a crash may repeat ids with --ids-durability=off": &NotDurable{
			Durable: 2, Needed: 3, Total: 5, Volatile: []string{"a has appendonly no", "b has appendfsync everysec"}},
		"counter 'orders' is remembered by 1 trusted masters, 3 needed, and the highest value found is 41; if it was never used, or its last id is known, say DIDRESEED orders VALUE with a value not below the last id that was given": &LostState{
			Counter: "orders", Trusted: 1, Needed: 3, Highest: 41},
		"counter 'orders' is at 9223372036854775807 and ends at 9223372036854775807; use another name": &Exhausted{
			Counter: "orders", Value: math.MaxInt64},
		"value 5 is below 9, which master a knows for counter 'orders': ids up to there may have been given; choose a value of at least 9": &BelowKnown{
			Counter: "orders", Value: 5, Known: 9, Master: "a"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%T says\n%s\nwant\n%s", err, got, want)
		}
	}
	for _, err := range []error{ErrHeld, ErrNotHeld, ErrWrongType, ErrShutdown} {
		if text := err.Error(); text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%q", text)
		}
	}
}
