package sim

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// leftovers looks at the masters when nothing is to be expected any more.
func (j *checker) leftovers() {
	for _, s := range j.world.servers {
		s.readClock(int64(j.world.now / time.Microsecond))
		for key := range s.memory {
			v := s.lookup(key)
			if v == nil || strings.HasPrefix(key, "redlockd:") {
				continue
			}
			if v.expires == 0 {
				j.world.violate("leftovers", key, "a copy that never expires is left on master "+s.name)
			}
			if !j.forgets {
				j.leftover(s, key, v)
			}
		}
	}
	if j.world.Scenario.Private {
		j.checkFullCopies()
	}
}

func (j *checker) leftover(s *server, key string, v *storedValue) {
	for token, ends := range v.holders() {
		t := j.token(key, token)
		kept := t.granted != 0 && (t.release == 0 || t.releases > 0)
		// The undo of a token that a client chose goes on its own connection only.
		lost := t.chosenAt != 0 && s.parted >= t.chosenAt
		// A script's lease counts from when it is run. What a master ran so late that the
		// copy outlasts all that was asked for before the release is spared as a later lease.
		left := time.Duration(ends-s.now) * time.Millisecond
		if spared := t.until + j.world.Scenario.MaxTTL + masterTimeout + time.Second - leeway; t.maxLease > 0 && t.release != 0 && j.world.now+left > spared {
			continue
		}
		if ends >= s.now && !kept && !t.foreign && !t.shared && !lost && t.acquires < 2 {
			j.world.violate("leftovers", key, fmt.Sprintf("master %s keeps a copy by %s for another %d ms, although nobody holds it",
				s.name, abbreviate(token), ends-s.now))
		}
	}
}

// holders are the tokens that stand at a key, and when their copies end.
func (v *storedValue) holders() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if v.kind == kindString && !yield(v.text, v.expires) {
			return
		}
		for _, reader := range v.scores {
			if !yield(reader.member, int64(reader.score)) {
				return
			}
		}
		for _, slot := range v.fields {
			ends, token, is := strings.Cut(slot.value, " ")
			at, err := strconv.ParseInt(ends, 10, 64)
			if is && err == nil && !yield(token, at) {
				return
			}
		}
	}
}

// everywhere: where nothing went wrong, a lock that is held has a copy on every
// master: they are what it survives failures by.
func (j *checker) checkFullCopies() {
	for key, r := range j.locks {
		for _, t := range r.claims {
			if t.until <= j.world.now || t.release != 0 {
				continue
			}
			for _, s := range j.world.servers {
				if v := s.lookup(key); v == nil || v.text != t.token {
					j.world.violate("leftovers", key, fmt.Sprintf("master %s has no copy of a lock that is held by %s", s.name, abbreviate(t.token)))
				}
			}
		}
	}
}
