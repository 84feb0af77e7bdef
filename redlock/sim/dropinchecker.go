package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlockd/redlock"
	"redlockd/redlock/sim/fake"
)

// What the checker requires for clients that use the quorum as one Redis. Exclusion,
// continuity and the truth of releases are those of all clients; in addition
//
//	views       what is seen of a lock that is held is its value, for no longer
//	            than was requested
//	copies      a lease rests on a quorum of copies that last as long
//	orphans     no copy lasts longer than the lease that was requested, and one
//	            that was left behind is gone with it

// leaseRequested notes a lease that was requested with a value.
func (j *checker) leaseRequested(key string, value redlock.Token, ttl time.Duration) {
	t := j.token(key, string(value))
	t.maxLease = max(t.maxLease, ttl)
}

// atMost is how long a copy may last. An addition that reaches a slow master late counts
// there once more, if the copy was made to last as long as the others' meanwhile.
func (t *tokenState) atMost() time.Duration { return t.maxLease + 2*t.added }

// viewed is called when a client receives the content of a key that it believes to hold.
func (j *checker) viewed(key, name string, value redlock.Token, v redlock.View) {
	w, t := j.world, j.token(key, name)
	j.checked++
	w.trace.note(key, "client sees %s %q for %.3f ms at %q", v.Kind, v.Value, ms(v.Left), key)
	switch {
	case t.until > w.now && t.release == 0 && t.unsure < t.granted && (v.Kind != "string" || v.Value != value):
		w.violate("views", key, fmt.Sprintf("%s %q is seen although %q holds the lock for another %.3f ms", v.Kind, v.Value, name, ms(t.until-w.now)))
	case v.Value == value && v.Left > t.atMost()+leeway:
		w.violate("views", key, fmt.Sprintf("%q is seen for another %.3f ms, at most %.3f ms were requested", value, ms(v.Left), ms(t.atMost())))
	}
}

// leeway is the largest error of a clock estimate on a slow link.
const leeway = 60 * time.Millisecond

// auditor checks the masters all the time: a copy that is left behind blocks
// all clients for as long as its lease, and no longer.
type auditor struct {
	baseClient
	stays bool          // until all leases have ended
	calm  time.Duration // since when no client begins anything; 0 = clients may
	over  bool
}

func newAuditor() client { return &auditor{} }

// newStayingAuditor waits for the end of everything. In its worlds what is left over
// cannot be told from what no client has released.
func newStayingAuditor() client { return &auditor{stays: true} }

func (c *auditor) busy() bool     { return c.stays && c.world.calm && !c.over }
func (c *auditor) lost(*daemon)   {}
func (c *auditor) String() string { return "the auditor" }

func (c *auditor) act() {
	w := c.world
	if w.calm && c.calm == 0 {
		c.calm = w.now
	}
	if key, name := c.audit(); c.calm > 0 {
		switch c.over = key == ""; {
		case !c.stays, c.over:
			return
		case w.now > c.calm+2*w.Scenario.MaxTTL+4*time.Second:
			w.violate("orphans", key, "no client has done anything for longer than the longest lease, and master "+name+" keeps a copy")
		}
	}
	if w.Scenario.Rests {
		w.checker().checkCopies()
	}
	c.soon(5*time.Millisecond, 40*time.Millisecond)
}

// checkCopies: where no master forgets and no clock is set, a lease that runs rests on
// copies of a quorum that last as long, at any time. No other client has to take the lock
// to show it.
func (j *checker) checkCopies() {
	w := j.world
	for _, s := range w.servers {
		s.readClock(int64(w.now / time.Microsecond))
	}
	for _, key := range slices.Sorted(maps.Keys(j.locks)) {
		for _, t := range j.locks[key].claims {
			if t.until <= w.now || t.release != 0 || t.mode != redlock.Exclusive || t.claims != redlock.Exclusive || strings.HasPrefix(t.token, commonValue+",") {
				continue
			}
			j.checked++
			copies := 0
			for _, s := range w.servers {
				if v := s.Lookup(key); v != nil && v.Kind == fake.String && v.Text == t.token && time.Duration(v.Expires-s.Now)*time.Millisecond >= t.until-w.now {
					copies++
				}
			}
			if copies <= len(w.servers)/2 {
				w.violate("copies", key, fmt.Sprintf("%d masters of %d keep %s for the %.3f ms of its validity", copies, len(w.servers), abbreviate(t.token), ms(t.until-w.now)))
			}
		}
	}
}

// audit checks every copy; it returns one, if there is any.
func (c *auditor) audit() (found, name string) {
	w := c.world
	for _, s := range w.servers {
		if !s.up || s.stopped {
			continue
		}
		s.readClock(int64(w.now / time.Microsecond))
		for _, key := range slices.Sorted(maps.Keys(s.Memory)) {
			v := s.Lookup(key)
			if v == nil || v.Kind != fake.String || strings.HasPrefix(key, "redlockd:") {
				continue
			}
			found, name = key, s.name
			t := w.checker().token(key, v.Text)
			longest := t.atMost()
			if longest == 0 {
				longest = w.Scenario.MaxTTL // of DLOCK
			}
			w.checker().checked++
			if left := time.Duration(v.Expires-s.Now) * time.Millisecond; v.Expires == 0 || left > longest+masterTimeout+leeway {
				w.violate("orphans", key, fmt.Sprintf("master %s keeps %q for another %.3f ms (0 = for ever: %d), at most %.3f ms were requested",
					s.name, v.Text, ms(left), v.Expires, ms(longest)))
			}
		}
	}
	return found, name
}
