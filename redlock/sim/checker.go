package sim

import (
	"fmt"
	"slices"
	"time"

	"redlockd/redlock"
)

// checker records every answer that a client received, and compares each new answer with
// them. What it requires of the product:
//
//	exclusion   of one key, no two tokens have validity at the same moment, except
//	            readers together, levels of one owner, and as many permits as there are
//	fences      unique among tokens; answered before requested means smaller; so does
//	            granted earlier, of two grants that exclude one another
//	continuity  an extension by the daemon that granted: no other client was in between
//	release     1: no other client was given it since; 0: it was not valid any more
//	delay       after a validity with DELAY, and after KEEP, no other token is given
//	            the key for as long
//	leftovers   once faults and clients have ended, no copy of a lock that was
//	            released or never granted is left on any master
//	ids         unique; answered before requested means smaller
//	work        no attempt runs twice or while another is valid, never more than
//	            MAX, none after DONE; a superseded attempt is never DONE; what is done has the
//	            result of the attempt that ended it
//
// In scenarios without faults every client must be served.
type checker struct {
	world    *World
	locks    map[string]*lockRecord
	tokens   map[string]*tokenState // by key and token
	counters map[string]*counterRecord
	works    map[string]*workRecord
	waiting  waitChecker
	serial   int64
	grants   int64
	checked  int64                          // answers compared
	inCycles map[*cycleClient]time.Duration // that wait in a cycle, and since when
}

func newChecker(w *World) *checker {
	return &checker{world: w, inCycles: map[*cycleClient]time.Duration{}, locks: map[string]*lockRecord{}, tokens: map[string]*tokenState{},
		counters: map[string]*counterRecord{}, works: map[string]*workRecord{},
		waiting: waitChecker{touched: map[string]time.Duration{}, queued: map[*daemon]int64{}, ambiguous: map[*daemon]bool{}, holds: map[string]*holdRecord{}}}
}

// checker is the checker of a world.
func (w *World) checker() *checker { return w.observer.(*checker) }

// lockRecord is one key.
type lockRecord struct {
	claims   []*tokenState // that may be valid
	fences   map[int64]string
	answered int64 // highest fence
	writers  int64 // highest fence of an exclusive grant
	owner    string
	ownedAt  int64 // serial of the last grant, by owner
	writer   string
	wroteAt  int64                        // serial of the last exclusive grant, by writer
	readers  map[redlock.Token]lastReader // by the owner of the level, "" = readers
}

// lastReader is the last grant to readers, or to levels of one owner.
type lastReader struct {
	token string
	at    int64 // its serial
	fence int64 // the highest
}

// tokenState is one token on one key.
type tokenState struct {
	key, token  string
	mode        redlock.Kind
	claims      redlock.Kind  // of the reply with until
	limit       int           // of permits
	until       time.Duration // of the validity in the reply
	reads       time.Duration // until then it is a reader still, from before it became the writer
	taken       time.Duration // until then nobody else is given the key, whether it is valid or not: DELAY, KEEP
	keeps       bool          // its copies end by themselves: KEEP
	daemon      *daemon       // that granted last
	granted     int64         // serial of the last grant, 0 = none
	release     int64         // serial of the first release since then, 0 = none
	released    int64         // serial of the last answer 1
	releases    int           // under way
	unsure      int64         // serial of the last call of unknown outcome
	acquiring   int           // acquires under way
	active      time.Duration // when it was used last, or how long it holds the key
	changedMode bool          // it has been requested in another mode
	regretted   bool          // its release was answered, and its acquire may still be under way
	foreign     bool
	hold        *holdRecord   // by which it is renewed
	extendedTo  time.Duration // the latest end that a reply to an extension promised
	acquires    int           // acquires with it: what an earlier one left is not undone by a later one
	chosenAt    time.Duration // when a client that chose it sent it, 0 = never
	shared      bool          // used through another daemon than the one that granted, which may still be at it
	maxLease    time.Duration // lease requested with it, by drop-in clients
	added       time.Duration // to that lease
}

func (j *checker) lock(key string) *lockRecord {
	r := j.locks[key]
	if r == nil {
		r = &lockRecord{fences: map[int64]string{}, readers: map[redlock.Token]lastReader{}}
		j.locks[key] = r
	}
	return r
}

func (j *checker) token(key, token string) *tokenState {
	t := j.tokens[key+"\x00"+token]
	if t == nil {
		t = &tokenState{key: key, token: token}
		j.tokens[key+"\x00"+token] = t
	}
	return t
}

func (j *checker) tick() int64 { j.serial++; return j.serial }

// beforeAcquire is called when an acquire leaves its client; what it returns goes to
// granted. That adds the grants since then: an acquire may be under way while another lock
// comes and goes. Holders that may overlap are ordered against those that they exclude. The
// levels of an owner, "" = readers, exclude those of others.
func (j *checker) beforeAcquire(key string, mode redlock.Kind, owner redlock.Token) (before int64) {
	r := j.lock(key)
	switch mode {
	case redlock.Exclusive:
		return r.answered
	case redlock.Shared:
		for other, last := range r.readers {
			if other != owner {
				before = max(before, last.fence)
			}
		}
	}
	return max(before, r.writers)
}

// rival reports whether a token that cannot hold the key together with t has been
// given it after t was, and which one. It does not cover permits.
func (r *lockRecord) rival(t *tokenState) (owner string, at int64, is bool) {
	switch t.mode {
	case redlock.Exclusive:
		return r.owner, r.ownedAt, r.owner != t.token
	case redlock.Shared:
		owner, at = r.writer, r.wroteAt
		for of, last := range r.readers {
			if of != redlock.OwnerOf(redlock.Token(t.token)) && last.at > at {
				owner, at = last.token, last.at
			}
		}
		return owner, at, at > t.granted
	}
	return "", 0, false
}

// granted is called when a client receives a grant.
func (j *checker) granted(d *daemon, key, token string, fence, before int64, until time.Duration) {
	w, r, t := j.world, j.lock(key), j.token(key, token)
	j.grants++
	j.checked++
	w.trace.note(key, "client holds %q by %s, fence %d, until %.3fms", key, abbreviate(token), fence, ms(until))
	j.exclusive(r, t, until)
	if until > w.now && !w.Scenario.Wiped {
		before = max(before, j.beforeAcquire(key, t.mode, redlock.OwnerOf(redlock.Token(token)))) // grants that came while this request was under way
	}
	if fence != 0 {
		if other := r.fences[fence]; other != "" && other != token {
			w.violate("fences", key, fmt.Sprintf("fence %d was given to %s and to %s", fence, abbreviate(other), abbreviate(token)))
		}
		if fence <= before {
			w.violate("fences", key, fmt.Sprintf("fence %d was given after %d had been answered", fence, before))
		}
		r.fences[fence], r.answered = token, max(r.answered, fence)
	}
	t.daemon, t.granted, t.release = d, j.tick(), 0
	r.owner, r.ownedAt = token, t.granted
	switch t.mode {
	case redlock.Exclusive:
		r.writer, r.wroteAt, r.writers = token, t.granted, max(r.writers, fence)
	case redlock.Shared:
		of := redlock.OwnerOf(redlock.Token(token))
		r.readers[of] = lastReader{token, t.granted, max(r.readers[of].fence, fence)}
	}
}

// exclusive makes sure that no other token has validity, and notes the new validity.
func (j *checker) exclusive(r *lockRecord, t *tokenState, until time.Duration) {
	now := j.world.now
	r.claims = slices.DeleteFunc(r.claims, func(c *tokenState) bool { return max(c.until, c.reads, c.taken) <= now && !c.hold.active(now) })
	together := 1
	for _, c := range r.claims {
		if c != t && j.world.Scenario.Wiped && c.hold.active(now) && !j.world.onQuorum(c) {
			j.mustEnd(c.hold)
		}
		if c != t && c.mode == redlock.Permits && t.mode == redlock.Permits {
			together++
		}
		mode := c.mode
		if c.until <= now && c.reads > now {
			mode = redlock.Shared
		}
		if c != t && until > now && !j.world.Scenario.Wiped && (mode != t.mode || !sameOwner(c, t) || t.mode == redlock.Exclusive || together > t.limit && t.mode == redlock.Permits) {
			j.world.violate("exclusion", t.key, fmt.Sprintf("%s was given the lock although %s holds it for another %.3f ms",
				abbreviate(t.token), abbreviate(c.token), ms(max(c.until, c.reads, c.taken)-now)))
		}
	}
	switch {
	case !slices.Contains(r.claims, t):
		r.claims = append(r.claims, t)
	case t.claims != t.mode: // as a writer it has what it requested as a writer, which may be less
		if t.mode == redlock.Exclusive {
			t.reads = max(t.reads, t.until)
		}
	default:
		until = max(until, t.until)
	}
	t.claims, t.until = t.mode, until
}

// sameOwner reports whether both are levels of one owner, or none is a level.
func sameOwner(a, b *tokenState) bool {
	return redlock.OwnerOf(redlock.Token(a.token)) == redlock.OwnerOf(redlock.Token(b.token))
}

// stillWriter is called when a writer's request to be a reader is refused.
func (j *checker) stillWriter(t *tokenState) {
	t.mode = redlock.Exclusive
	if t.until > j.world.now {
		j.exclusive(j.lock(t.key), t, t.until)
	}
}

// extended is called when a client receives that its lock was prolonged.
func (j *checker) extended(d *daemon, key, token string, until time.Duration) {
	r, t := j.lock(key), j.token(key, token)
	j.checked++
	j.world.trace.note(key, "client extends %q by %s until %.3fms", key, abbreviate(token), ms(until))
	if owner, _, lost := r.rival(t); lost && t.granted != 0 && t.daemon == d && t.acquiring == 0 && t.unsure < t.granted {
		j.world.violate("continuity", key, fmt.Sprintf("%s was extended although %s had got the lock in between",
			abbreviate(token), abbreviate(owner)))
	}
	if t.release == 0 && t.releases == 0 {
		t.extendedTo = max(t.extendedTo, until)
		j.exclusive(r, t, until)
	}
}

// releaseCall is a release that has left its client.
type releaseCall struct {
	token *tokenState
	sole  bool          // nothing else can have released the token
	until time.Duration // of the validity before
	taken time.Duration // before
	since int64

	at, keep time.Duration // when it was sent, and KEEP
}

// promised is how long the key stays taken of a DELAY or a KEEP: clocks may gain 1 %.
func promised(d time.Duration) time.Duration { return d - d/100 - 2*time.Millisecond }

// delayed is called when a client has received a validity that ends at until.
func (t *tokenState) delayed(until, delay time.Duration) {
	if delay > 0 {
		t.taken = max(t.taken, until+promised(delay))
	}
}

// releasing is called when a release leaves its client; it relies on nothing from then on.
func (j *checker) releasing(key, token string) releaseCall {
	t := j.token(key, token)
	now := j.tick()
	j.world.trace.note(key, "client releases %q by %s", key, abbreviate(token))
	sole := t.release == 0 && t.releases == 0 && t.acquiring == 0 && t.unsure < t.granted && t.granted != 0
	call := releaseCall{token: t, sole: sole, until: t.until, taken: t.taken, since: now}
	t.until, t.reads, t.taken = min(t.until, j.world.now), min(t.reads, j.world.now), 0
	t.releases++
	if t.release == 0 {
		t.release = now
	}
	return call
}

// released is called when the answer has come; with an error it is unknown.
func (j *checker) released(c releaseCall, answer bool, err error) {
	w, t, unknown := j.world, c.token, err != nil
	key, token, r := t.key, t.token, j.lock(t.key)
	t.releases--
	j.checked++
	w.trace.note(key, "release of %q by %s: %v, unknown %v", key, abbreviate(token), answer, unknown)
	owner, ownedAt, lost := r.rival(t)
	switch {
	case unknown:
		t.unsure = j.tick()
	case w.Scenario.Wiped:
	case answer && t.granted != 0 && t.granted < c.since && lost && ownedAt < c.since && t.unsure < t.granted && t.acquiring == 0:
		w.violate("release", key, fmt.Sprintf("%s received 1 for its release, although %s had got it in between",
			abbreviate(token), abbreviate(owner)))
	case answer && t.released > t.granted && t.released < c.since && t.unsure < t.granted && t.acquiring == 0:
		w.violate("release", key, abbreviate(token)+" was released twice by one grant")
	case t.hold != nil && t.hold.lost: // while the release was under way
	case !answer && c.sole && c.until > w.now:
		w.violate("release", key, fmt.Sprintf("%s received 0 for its release, with %.3f ms of its validity left",
			abbreviate(token), ms(c.until-w.now)))
	}
	if answer {
		t.released = j.tick()
	}
	if t.keeps = t.keeps || c.keep > 0; c.keep > 0 && answer && c.sole {
		t.taken = min(max(c.until, c.taken), c.at+promised(c.keep))
	}
}

// counterRecord is one counter.
type counterRecord struct {
	given    map[int64]bool
	answered int64

	// A deletion allows ids up to the value that it confirms to be given again, until
	// it is answered.
	deleting  int   // deletions under way
	deletions int   // begun so far
	confirmed int64 // the highest value that any of them confirms
}

// idRequest is the state of a counter when ids are requested.
type idRequest struct {
	answered  int64 // ids up to here were answered
	deletions int   // begun by then
}

// deletion is called when one leaves its client, and what it returns when it is answered.
func (j *checker) deletion(name string, value int64) (over func()) {
	c := j.counter(name)
	j.checked++
	c.deleting++
	c.deletions++
	c.confirmed = max(c.confirmed, value)
	if c.answered <= value {
		c.answered = 0
	}
	for id := range c.given {
		if id <= value {
			delete(c.given, id)
		}
	}
	return func() { c.deleting-- }
}

func (j *checker) counter(name string) *counterRecord {
	c := j.counters[name]
	if c == nil {
		c = &counterRecord{given: map[int64]bool{}}
		j.counters[name] = c
	}
	return c
}

// ids is called when a client receives its ids.
func (j *checker) ids(name string, first, count int64, r idRequest) {
	c := j.counter(name)
	j.checked++
	j.world.trace.note(name, "client got %d..%d of %q, %d had been answered before", first, first+count-1, name, r.answered)
	free := int64(0) // ids up to here may be given again
	if c.deleting > 0 {
		free = c.confirmed
	}
	for id := max(first, free+1); id < first+count; id++ {
		if c.given[id] {
			j.world.violate("ids", name, fmt.Sprintf("id %d was given twice", id))
		}
		c.given[id] = true
	}
	if first <= r.answered && (r.deletions == c.deletions || r.answered > c.confirmed) {
		j.world.violate("ids", name, fmt.Sprintf("id %d was given after %d had been answered", first, r.answered))
	}
	if last := first + count - 1; last > free {
		c.answered = max(c.answered, last)
	}
}

// workRecord is one piece of work.
type workRecord struct {
	runs    map[int64]string // attempt → token
	highest int64
	holder  string
	until   time.Duration
	done    int64 // the attempt whose end was acknowledged; 0 = none
	fence   int64
}

func (j *checker) work(key string) *workRecord {
	r := j.works[key]
	if r == nil {
		r = &workRecord{runs: map[int64]string{}}
		j.works[key] = r
	}
	return r
}

// started is called when a worker receives an attempt. doneBefore: the end
// had been acknowledged when the worker sent its request.
func (j *checker) started(key, token string, attempt, limit, fence, before int64, doneBefore bool, until time.Duration) {
	w, r := j.world, j.work(key)
	j.grants++
	j.checked++
	w.trace.note(key, "worker starts attempt %d of %q by %s, fence %d, until %.3fms", attempt, key, abbreviate(token), fence, ms(until))
	switch {
	case r.runs[attempt] != "":
		w.violate("work", key, fmt.Sprintf("attempt %d was given twice", attempt))
	case attempt > limit:
		w.violate("work", key, fmt.Sprintf("attempt %d of at most %d", attempt, limit))
	case doneBefore:
		w.violate("work", key, fmt.Sprintf("attempt %d was started after the work had been done", attempt))
	case r.until > w.now && until > w.now:
		w.violate("work", key, fmt.Sprintf("attempt %d was started while another has %.3f ms left", attempt, ms(r.until-w.now)))
	case fence <= before:
		w.violate("fences", key, fmt.Sprintf("fence %d was given after %d had been answered", fence, before))
	}
	r.runs[attempt], r.highest = token, max(r.highest, attempt)
	r.holder, r.until, r.fence = token, until, max(r.fence, fence)
}

// ending is called when a worker ends its attempt, whatever the answer.
func (j *checker) ending(key, token string) {
	if r := j.work(key); r.holder == token {
		r.until = min(r.until, j.world.now)
	}
}

// done is called when the end was acknowledged; newest was the highest attempt
// that had been started when the worker sent it.
func (j *checker) done(key string, attempt, newest int64, finished bool) {
	j.checked++
	j.world.trace.note(key, "attempt %d of %q has ended, finished %v", attempt, key, finished)
	if newest > attempt {
		j.world.violate("work", key, fmt.Sprintf("attempt %d was acknowledged as ended after attempt %d had started", attempt, newest))
	}
	if finished {
		j.work(key).done = attempt
	}
}

// isDone is called when a worker receives that the work is done, and by which attempt. acknowledged:
// the end had been when the worker sent its request.
func (r *workRecord) isDone(w *World, key string, attempt int64, acknowledged bool, result *string) {
	switch {
	case acknowledged && attempt != r.done:
		w.violate("work", key, fmt.Sprintf("done by attempt %d, although the end of attempt %d was acknowledged", attempt, r.done))
	case result == nil || *result != resultOf(attempt):
		w.violate("work", key, fmt.Sprintf("done by attempt %d, with another one's result", attempt))
	}
}

func (j *checker) prolonged(key, token string, until time.Duration) {
	if r := j.work(key); r.holder == token && until > r.until && r.until > j.world.now {
		r.until = until
	} else if r.holder != token && r.until > j.world.now {
		j.world.violate("work", key, abbreviate(token)+" was prolonged while a later attempt is valid")
	}
}
