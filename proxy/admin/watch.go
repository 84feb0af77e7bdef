package admin

// watch.go keeps what the page shows over time: the record of its verdicts, and events. A
// watch of a database exists while pages poll it. It has no goroutine.

import (
	"slices"
	"sync"
	"time"

	"redlockd/commands/diagnosis"
	"redlockd/redlock"
)

const (
	// idleAfter is how long watches outlive the last poll.
	idleAfter = 10 * time.Second
	// maxEvents is how many events are kept, and shown.
	maxEvents = 100
)

type watches struct {
	locks Locks
	mu    sync.Mutex
	all   map[int]*watch // nil after close
	idle  *time.Timer    // nil before the first poll
}

// watch collects the data of one database.
type watch struct {
	end func() // of the events

	mu     sync.Mutex
	record diagnosis.Record
	events []redlock.Event // the last ones, the oldest first
	// first and last are the numbers before the first event and of the last one. first is
	// the time in ms, so that a later watch has higher numbers.
	first, last int64
}

// of returns the watch of a database, nil when the endpoint is closed.
func (ws *watches) of(db int) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all == nil {
		return nil
	}
	if ws.idle == nil {
		ws.idle = time.AfterFunc(idleAfter, func() { ws.end(map[int]*watch{}) })
	}
	ws.idle.Reset(idleAfter)
	w, now := ws.all[db], time.Now().UnixMilli()
	if w == nil {
		w = &watch{first: now, last: now}
		w.end = ws.locks.Listen(db, w.onEvent)
		ws.all[db] = w
	}
	return w
}

// end ends all watches; next replaces them, nil closes. A poll that is under way may still
// read an ended one.
func (ws *watches) end(next map[int]*watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.end()
	}
	if ws.all != nil {
		ws.all = next
	}
	if ws.idle != nil {
		ws.idle.Stop()
	}
}

// onEvent is called for one event at a time.
func (w *watch) onEvent(e redlock.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.events = append(w.events[max(0, len(w.events)-maxEvents+1):], e)
}

// eventsAfter returns the events after a number, the number of the last one, and how many
// were dropped in between.
func (w *watch) eventsAfter(number int64) (events []redlock.Event, last, dropped int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := max(0, w.last-max(number, w.first))
	n := min(fresh, int64(len(w.events)))
	return slices.Clone(w.events[int64(len(w.events))-n:]), w.last, fresh - n
}

// poll adds the present state; it returns what the page shows of the masters.
func (w *watch) poll(reports []redlock.MasterReport, undecided int64, now time.Time) (h diagnosis.Headline, rows []map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h = w.record.Poll(reports, undecided, now)
	for i := range reports {
		rows = append(rows, masterRow(&reports[i], &w.record, now))
	}
	return h, rows
}
