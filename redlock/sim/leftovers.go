package sim

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"redlockd/redlock/sim/fake"
)

// leftovers checks the masters when no command is under way any more.
func (j *checker) leftovers() {
	for _, s := range j.world.servers {
		s.readClock(int64(j.world.now / time.Microsecond))
		for key := range s.Memory {
			v := s.Lookup(key)
			if v == nil || strings.HasPrefix(key, "redlockd:") {
				continue
			}
			if v.Expires == 0 {
				j.world.violate("leftovers", key, "a copy that never expires is left on master "+s.name)
			}
			if !j.world.forgets {
				j.leftover(s, key, v)
			}
		}
	}
	if j.world.Scenario.Private {
		j.checkFullCopies()
	}
}

func (j *checker) leftover(s *server, key string, v *fake.Value) {
	for token, ends := range holders(v) {
		t := j.token(key, token)
		kept := t.granted != 0 && (t.release == 0 || t.releases > 0)
		// The undo of a token that a client chose goes on its own connection only, and the release on any.
		lost := t.chosenAt != 0 && s.parted >= t.chosenAt && t.granted == 0
		// A script's lease counts from when it is run. What a master ran so late that the
		// copy outlasts all that was requested before the release is spared as a later lease.
		left := time.Duration(ends-s.Now) * time.Millisecond
		if spared := t.until + j.world.Scenario.MaxTTL + masterTimeout + time.Second - leeway; t.maxLease > 0 && t.release != 0 && j.world.now+left > spared {
			continue
		}
		if ends >= s.Now && !kept && !t.foreign && !t.shared && !t.keeps && !lost && t.acquires < 2 {
			j.world.violate("leftovers", key, fmt.Sprintf("master %s keeps a copy by %s for another %d ms, although no client holds it",
				s.name, abbreviate(token), ends-s.Now))
		}
	}
}

// holders are the tokens at a key, and when their copies end.
func holders(v *fake.Value) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if v.Kind == fake.String && !yield(v.Text, v.Expires) {
			return
		}
		for _, reader := range v.Scores {
			if !yield(reader.Member, int64(reader.Score)) {
				return
			}
		}
		for _, slot := range v.Fields {
			ends, token, is := strings.Cut(slot.Value, " ")
			at, err := strconv.ParseInt(ends, 10, 64)
			if is && err == nil && !yield(token, at) {
				return
			}
		}
	}
}

// checkFullCopies: where nothing went wrong, a lock that is held has a copy on every
// master. The copies let it survive failures.
func (j *checker) checkFullCopies() {
	for key, r := range j.locks {
		for _, t := range r.claims {
			if t.until <= j.world.now || t.release != 0 {
				continue
			}
			for _, s := range j.world.servers {
				if v := s.Lookup(key); v == nil || v.Text != t.token {
					j.world.violate("leftovers", key, fmt.Sprintf("master %s has no copy of a lock that is held by %s", s.name, abbreviate(t.token)))
				}
			}
		}
	}
}

// begins implements observer: it starts the checks that run at intervals.
func (j *checker) begins() {
	if j.world.Scenario.MaxWait > 0 {
		j.checkSleep()
	}
	if j.world.Scenario.MaxCycle > 0 {
		j.checkCycles()
	}
}

// rests implements observer.
func (j *checker) rests() {
	j.leftovers()
	w := j.world
	if w.Scenario.Fair == 0 || w.violation != nil {
		return
	}
	if !w.Scenario.Reliable { // a ticket that is refreshed no more expires
		until := w.now + 4*time.Second
		for _, s := range w.servers {
			until = max(until, s.doubted)
		}
		w.run(until)
	}
	j.queues()
}
