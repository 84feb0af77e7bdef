package redlock

// work_soak_test.go: many workers, a third of which die at random moments.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/redlocktest"
)

// workLog is what the workers saw of one piece of work.
type workLog struct {
	key Key

	mu     sync.Mutex
	runs   map[int64]int // by attempt
	done   time.Duration // when its end was acknowledged first, 0 = never
	state  WorkState     // how it ended, "" = it has not
	breach []string
}

func (l *workLog) started(asked time.Duration, w Work, limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[w.Attempt]++
	switch {
	case l.done > 0 && asked > l.done:
		l.breach = append(l.breach, fmt.Sprintf("attempt %d was asked for %v after the end was acknowledged, and given", w.Attempt, asked-l.done))
	case l.runs[w.Attempt] > 1 || w.Attempt > limit:
		l.breach = append(l.breach, fmt.Sprintf("attempt %d was given %d times, %d attempts are allowed", w.Attempt, l.runs[w.Attempt], limit))
	}
}

// acknowledged notes that a worker was told that its end stands.
func (l *workLog) acknowledged(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == 0 {
		l.done = now
	}
}

// over notes how somebody who asked then found the work ended. A worker whose
// last attempt timed out may come back and be done after others were told that
// no attempt is left; the other way round must not happen.
func (l *workLog) over(asked, now time.Duration, state WorkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state != WorkDone && l.done > 0 && asked > l.done {
		l.breach = append(l.breach, fmt.Sprintf("it was found %s by one who asked %v after its end was known", state, asked-l.done))
	}
	if state == WorkDone && l.done == 0 {
		l.done = now
	}
	if l.state != WorkDone {
		l.state = state
	}
}

// verdict is what is wrong with the log.
func (l *workLog) breaches() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	breach := l.breach
	if l.state == "" {
		breach = append(breach, "it never ended")
	}
	return breach
}

// soak is the workers' world: places, at each of which the next piece of work
// waits when one has ended. It is over when so many pieces of work have ended, and
// some of them as done, others as exhausted.
type soak struct {
	t      *testing.T
	origin time.Time
	wanted int

	mu   sync.Mutex
	ends map[WorkState]int
	over bool
	at   []*workLog
	logs []*workLog
}

const (
	soakPlaces  = 50
	soakWorkers = 200
	soakMax     = 3
	soakKeep    = 10 * time.Minute // far longer than any worker is behind the others
)

func (s *soak) request(k Key) WorkRequest {
	return WorkRequest{Key: k, Timeout: 400 * time.Millisecond, Max: soakMax, Keep: soakKeep}
}

// find is the piece of work at a place.
func (s *soak) find(place int) *workLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[place]
}

// next puts another piece of work where this one was.
func (s *soak) next(place int, ended *workLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended == nil || s.at[place] == ended {
		if ended != nil {
			ended.mu.Lock()
			s.ends[ended.state]++
			ended.mu.Unlock()
		}
		s.over = len(s.logs) > soakPlaces+s.wanted && s.ends[WorkDone] > 0 && s.ends[WorkExhausted] > 0
		s.at[place] = &workLog{key: key(len(s.logs)), runs: map[int64]int{}}
		s.logs = append(s.logs, s.at[place])
	}
}

// isOver tells whether enough work has ended.
func (s *soak) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// work is one worker: it takes what is to be done, and may die at it.
func (s *soak) work(number int, d *daemon) {
	mortal := number%3 == 0
	for !s.isOver() {
		place := rand.IntN(soakPlaces)
		log := s.find(place)
		r := s.request(log.key)
		if rand.IntN(3) == 0 {
			r.Wait = 100 * time.Millisecond
		}
		asked := time.Since(s.origin)
		a := <-d.requestWork(r)
		switch {
		case a.err != nil:
			s.mayFail(number, a.err)
		case a.work.State == WorkAcquired:
			log.started(asked, a.work, soakMax)
			pause(100 * time.Millisecond) // the work
			if mortal && rand.IntN(20) == 0 {
				return
			}
			s.conclude(d, a.work, log)
			continue
		case a.work.State != WorkRunning:
			log.over(asked, time.Since(s.origin), a.work.State)
			s.next(place, log)
		}
		pause(20 * time.Millisecond) // as a worker that polls
	}
}

// pause is the time that a worker's own business takes.
func pause(most time.Duration) { time.Sleep(rand.N(most)) }

// mayFail lets pass what a busy machine may lead to.
func (s *soak) mayFail(number int, err error) {
	var slow *Expired
	var unknown *NoQuorum
	if !errors.As(err, &slow) && !errors.As(err, &unknown) {
		s.t.Errorf("worker %d: %v", number, err)
	}
}

// conclude ends an attempt, after prolonging it perhaps.
func (s *soak) conclude(d *daemon, w Work, log *workLog) {
	if rand.IntN(4) == 0 {
		answer := make(chan workAnswer, 1)
		d.WorkExtend(nil, WorkEndRequest{Key: w.Key, Token: w.Token, Timeout: 400 * time.Millisecond},
			func(w Work, err error) { answer <- workAnswer{w, err} })
		<-answer
		pause(300 * time.Millisecond)
	}
	if rand.IntN(3) == 0 {
		<-d.requestEnd(d.WorkFail, w)
		return
	}
	if a := <-d.requestEnd(d.WorkDone, w); a.err == nil && a.ok {
		log.acknowledged(time.Since(s.origin))
	}
}

func TestWork_SoakWithWorkersThatDie(t *testing.T) {
	if testing.Short() {
		t.Skip("a soak is evidence: make test-long")
	}
	t.Parallel()
	s := &soak{t: t, origin: time.Now(), wanted: 300, ends: map[WorkState]int{}, at: make([]*workLog, soakPlaces)}
	if longRun() {
		s.wanted = 3000
	}
	c := newCluster(t, 5, long)
	daemons := []*daemon{c.daemon(), c.daemon()}
	for place := range s.at {
		s.next(place, nil)
	}
	var workers sync.WaitGroup
	t.Cleanup(func() { // also if not enough has ended
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		workers.Wait()
	})
	for i := range soakWorkers {
		workers.Go(func() { s.work(i, daemons[i%2]) })
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	redlocktest.EventuallyIn(t, 10*time.Minute, "enough work ends", func() bool {
		<-tick.C
		c.allExpire()
		return s.isOver()
	})
	workers.Wait()
	for place := range s.at {
		workers.Go(func() { s.clearUp(place, daemons[place%2]) })
	}
	workers.Wait()
	s.check()
	for i := range c.servers { // nothing lasts longer than it was asked for
		for _, k := range c.workKeys(i) {
			if left := c.do(i, "PTTL", k).(int64); left > (soakKeep + time.Minute).Milliseconds() {
				t.Errorf("master %s: %s lasts for another %d ms", name(i), k, left)
			}
		}
	}
}

// clearUp uses up what the dead left behind at a place.
func (s *soak) clearUp(place int, d *daemon) {
	log := s.find(place)
	r := s.request(log.key)
	r.Wait = long
	for {
		asked := time.Since(s.origin)
		a := <-d.requestWork(r)
		switch {
		case a.err != nil:
			s.mayFail(-1, a.err)
		case a.work.State == WorkAcquired:
			log.started(asked, a.work, soakMax)
			<-d.requestEnd(d.WorkFail, a.work)
		case a.work.State != WorkRunning:
			log.over(asked, time.Since(s.origin), a.work.State)
			return
		}
	}
}

// check inspects all that was recorded.
func (s *soak) check() {
	s.t.Helper()
	runs, ends := 0, map[WorkState]int{}
	for _, log := range s.logs {
		for _, breach := range log.breaches() {
			s.t.Errorf("work %q: %s", log.key, breach)
		}
		ends[log.state]++
		for _, n := range log.runs {
			runs += n
		}
	}
	s.t.Logf("%d runs of %d pieces of work: %v", runs, len(s.logs), ends)
	if ends[WorkDone] == 0 || ends[WorkExhausted] == 0 {
		s.t.Errorf("the ends are %v: without both of them this proves too little", ends)
	}
}
