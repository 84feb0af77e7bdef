package chaos

// holding_test.go: locks that last as long as their connection. Holders stay for
// several leases, are cut off or killed, receive that they have lost, or outlive
// what they requested.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"redlockd/redlock/checker"
)

// lostInTime is the reason of a loss after which the masters may still have the lock.
const lostInTime = "it could not be renewed in time"

type holding struct {
	*clientGroup

	mu     sync.Mutex
	count  map[string]int
	claims []claim
}

// claim is something that must be true unless a fault explains that it is not.
type claim struct {
	daemon   int // that it was promised by
	key      string
	from, to time.Duration
	broken   string // "" = it was true
}

func newHolding(r *run) workload {
	return &holding{clientGroup: newClientGroup(r, "hold", 6), count: map[string]int{}}
}

func (h *holding) work(ctx context.Context, c *caller) {
	h.live(ctx, c, h.round, 50*time.Millisecond)
}

func (h *holding) tally(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[what]++
}

func (h *holding) claim(l *lease, from time.Duration, broken string, words ...any) {
	h.clientGroup.mu.Lock()
	daemon := h.elections[l.election].Daemon
	h.clientGroup.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims = append(h.claims, claim{daemon, l.keys[0], from, h.record.Now(), fmt.Sprintf(broken, words...)})
}

func (h *holding) round(ctx context.Context, c *client) {
	wants := wants{
		keys: []string{h.keys[c.random.IntN(len(h.keys))]}, ttl: c.draw(maxTTL/2, maxTTL),
		wait: maxTTL, words: []any{"HOLD"}, holds: true,
	}
	switch c.random.IntN(8) {
	case 0, 1:
		h.cut(ctx, c, wants)
	case 2:
		wants.token, wants.holds = h.token(c), false // it stays to the end of its lease
		h.cut(ctx, c, wants)
	case 3:
		h.killed(ctx, c, wants)
	case 4:
		h.forced(c, wants)
	case 5:
		h.limited(c, wants)
	default:
		h.stay(ctx, c, wants)
	}
}

// stay holds for up to three leases and gives back. A client that receives that the
// token holds the key has had it all the time: the checker verifies that.
func (h *holding) stay(ctx context.Context, c *client, w wants) {
	l := c.take(w)
	if l == nil {
		return
	}
	began := l.began()
	lost, err := c.talk.awaitLoss(l.token, c.draw(w.ttl/2, 3*w.ttl))
	if err != nil {
		c.broke()
		return
	}
	shown, _ := c.do(callTimeout, "DMETA", w.keys[0], l.token, "still here")
	if c.often(4) {
		_, _ = c.stand.daemons[c.daemon].ask("DREVOKE", w.keys[0], "let go") // which changes nothing
	}
	held, known := c.extend(l)
	if known && held && shown == int64(0) {
		h.claim(l, began, "the note of a hold was refused, which was extended after that: %s by %s", w.keys[0], l.token)
	}
	if known && lost != "" && lost != lostInTime && held { // time alone deletes no copy
		h.tally("extended although lost")
	}
	if known && !held && lost == "" {
		lost, err = c.talk.awaitLoss(l.token, 2*w.ttl) // the push may be on its way
		if err != nil {
			c.broke()
			return
		}
	}
	if known && !held && lost == "" {
		h.claim(l, began, "a hold was lost without a fault, or it was not reported: %s by %s", w.keys[0], l.token)
	}
	if lost != "" {
		h.claim(l, began, "a hold was lost without a fault: %s by %s: %s", w.keys[0], l.token, lost)
		h.tally("received a loss")
	}
	was, known := c.giveBack(l)
	if known && !was && held {
		h.claim(l, began, "a hold that was extended could not be given back: %s by %s", w.keys[0], l.token)
	}
	if known && lost == "" {
		h.claim(l, began, "")
	}
	h.tally("stayed")
	if !known {
		c.hangUp()
	}
}

// cut hangs up while it holds. A token of its own keeps the lock to its end.
func (h *holding) cut(ctx context.Context, c *client, w wants) {
	l := c.take(w)
	if l == nil {
		return
	}
	c.rest(ctx, 2*w.ttl)
	calls := c.begin(checker.Release, &l.wants, l.token)
	at := h.record.Now()
	c.hangUp()
	for _, call := range calls {
		call.Unknown()
	}
	if w.token != "" {
		at += w.ttl
	}
	h.gone(l, at)
	h.tally("cut off")
	c.next(l)
}

// next takes what another client has left, as do all others that wait for it.
func (c *client) next(l *lease) {
	if n := c.take(wants{keys: l.keys, ttl: l.ttl, wait: 2 * maxTTL}); n != nil {
		c.finish(n)
	}
}

// forced has an operator release the lock: the holder receives that.
func (h *holding) forced(c *client, w wants) {
	l := c.take(w)
	if l == nil {
		return
	}
	began := l.began()
	calls := c.begin(checker.Release, &l.wants, l.token)
	reply, err := c.stand.daemons[c.daemon].ask("DFORCE", w.keys[0])
	for _, call := range calls {
		call.Unknown()
	}
	if err != nil || reply != int64(1) {
		c.finish(l)
		return
	}
	reason, err := c.talk.awaitLoss(l.token, 2*w.ttl)
	if err != nil {
		c.broke()
		return
	}
	h.gone(l, h.record.Now())
	if reason == "" {
		h.claim(l, began, "the holder of %s did not receive within %v that it was released by force", w.keys[0], 2*w.ttl)
		return
	}
	h.tally("received a release by force")
	if held, known := c.extend(l); known && held {
		h.tally("extended although lost")
	}
}

// limited requests no more than so long, and receives the end of that.
func (h *holding) limited(c *client, w wants) {
	longest := c.draw(w.ttl/2, 2*w.ttl)
	w.words = []any{"HOLD", longest.Milliseconds()}
	l := c.take(w)
	if l == nil {
		return
	}
	began := l.began()
	reason, err := c.talk.awaitLoss(l.token, longest+2*w.ttl)
	if reason != "" { // its time is over, or another client has released it by force
		for _, call := range c.begin(checker.Release, &l.wants, l.token) {
			call.Unknown()
		}
	}
	h.gone(l, h.record.Now())
	switch {
	case err != nil:
		c.broke()
	case reason == "":
		h.claim(l, began, "the holder of %s did not receive within %v that its %v are over", w.keys[0], longest+2*w.ttl, longest)
	default:
		h.tally("received that its time is over")
	}
}

func (h *holding) verdict() (string, error) {
	tally, err := h.check(checker.Check)
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{err}
	allowed, kept := 0, 0
	for _, one := range h.claims {
		explained := h.run.nemesis.allowedError(one.daemon, one.key, one.from, one.to, holdTerms)
		switch {
		case one.broken == "" && explained == "":
			kept++
		case one.broken == "":
		case explained != "":
			allowed++
		default:
			errs = append(errs, fmt.Errorf("%s: promised by daemon %d, no fault explains it in [%v, %v]", one.broken, one.daemon, one.from, one.to))
		}
	}
	if n := h.count["extended although lost"]; n > 0 {
		errs = append(errs, fmt.Errorf("%d times a lock was extended after its holder had received that it is lost", n))
	}
	h.clientGroup.mu.Lock()
	defer h.clientGroup.mu.Unlock()
	more, late := h.run.prompt(h.elections, 10*promptly)
	return fmt.Sprintf("%s; %v; %d stayed with a quorum all the time, %d losses that a fault explains; %s", tally, h.count, kept, allowed, more), errors.Join(append(errs, late)...)
}
