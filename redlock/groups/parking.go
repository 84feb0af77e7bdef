package groups

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"redlockd/redlock"
)

// parking has the requests that wait for a change of the map.
type parking struct {
	mu     sync.Mutex
	last   int
	closed bool
	all    map[*routedWait]struct{}
}

// add reports false if the daemon stops.
func (p *parking) add(w *routedWait, left time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.all == nil {
		p.all = map[*routedWait]struct{}{}
	}
	p.last++
	w.number, p.all[w] = p.last, struct{}{}
	w.timer = w.router.clock.AfterFunc(left, w.onTimeout)
	return true
}

// remove reports whether the request was parked: its next step is the caller's.
func (p *parking) remove(w *routedWait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removeLocked(w)
}

func (p *parking) removeLocked(w *routedWait) bool {
	if w.number == 0 {
		return false
	}
	delete(p.all, w)
	w.number = 0
	w.timer.Stop()
	return true
}

// takeLocked removes all requests, and returns them in order of arrival.
func (p *parking) takeLocked() (all []*routedWait) {
	for w := range p.all {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *routedWait) int { return cmp.Compare(a.number, b.number) })
	for _, w := range all {
		p.removeLocked(w)
	}
	return all
}

// wake lets all requests begin again; those whose keys are frozen still are parked again.
func (p *parking) wake() {
	p.mu.Lock()
	all := p.takeLocked()
	p.mu.Unlock()
	for _, w := range all {
		w.begin(nil)
	}
}

// end answers all requests with ErrShutdown.
func (p *parking) end() {
	p.mu.Lock()
	p.closed = true
	all := p.takeLocked()
	p.mu.Unlock()
	for _, w := range all {
		w.fail(redlock.ErrShutdown)
	}
}

func (p *parking) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// waiting lists the requests for locks, see redlock.Locker.
func (p *parking) waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.all {
		q := w.request
		if q == nil || q.DB != db || !slices.ContainsFunc(w.keys, wanted) {
			continue
		}
		all++
		list = append(list, redlock.DescribeWait(q, w.keys, w.number, w.end, w.router.clock.Now()))
	}
	slices.SortFunc(list, func(a, b redlock.Waiting) int { return cmp.Compare(a.Place, b.Place) })
	for i := range list {
		list[i].Place = i + 1
	}
	return list[:min(len(list), most)], all
}
