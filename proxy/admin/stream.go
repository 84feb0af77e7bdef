package admin

// stream.go sends changes to the page over one response that does not end, as server-sent
// events: "view" with the whole screen once a second, "events" as they come.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

const (
	// maxStreams is how many pages are served at once; each costs some 20 kB a second,
	// and 20 ms of a core a second when there are a hundred thousand locks.
	mostStreams = 16
	// maxStreamsPerUser leaves some for others; without users it applies to an address.
	mostStreamsOfUser = mostStreams / 2
	// eventsInterval is how often events are sent.
	newsEvery = 250 * time.Millisecond
	// sendTimeout is how long a viewer may take to receive a message.
	readerTime = 10 * time.Second
	// maxSearch is the length of the longest key.
	longestSearch = 512
)

// pageCounts counts the open pages of each user. The zero value is ready.
type readers struct {
	mu sync.Mutex
	of map[string]int
}

func (r *readers) enter(user string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[user] >= mostStreamsOfUser {
		return false
	}
	if r.of == nil {
		r.of = make(map[string]int)
	}
	r.of[user]++
	return true
}

func (r *readers) leave(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[user]--; r.of[user] == 0 {
		delete(r.of, user)
	}
}

// pageStream is the stream of one open page.
type watching struct {
	server   *Server
	visitor  commands.Visitor
	question question
	lookout  *lookout
	out      http.ResponseWriter
	heard    uint64 // the last event that was sent
}

// stream serves one page until it is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, visitor commands.Visitor) {
	db, q, err := s.asked(r)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	user := visitor.Name()
	if user == "" {
		user, _ = origin(r.RemoteAddr)
	}
	if !s.readers.enter(user) {
		answer(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages of this user are open already, the limit of this daemon for one user; close one", mostStreamsOfUser))
		return
	}
	defer s.readers.leave(user)
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		answer(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already, the limit of this daemon; close one", mostStreams))
		return
	}
	o := s.lookouts.enter(db)
	if o == nil {
		answer(w, http.StatusServiceUnavailable, "this daemon is stopping")
		return
	}
	defer s.lookouts.leave(o)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // else proxies would buffer it
	w.Header().Set("Connection", "close")     // the deadlines set here must not apply to another request
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the request has been read; nothing more comes
	one := &watching{server: s, visitor: visitor, question: q, lookout: o, out: w}
	_, one.heard, _ = o.news.after(0)
	one.run(r.Context())
}

// parseQuery reads the parameters of a page.
func (s *Server) asked(r *http.Request) (db int, q question, err error) {
	values := r.URL.Query()
	q = question{search: values.Get("search"), order: values.Get("order")}
	if q.order == "" {
		q.order = "key"
	}
	if text := values.Get("offset"); text != "" {
		if q.offset, err = strconv.Atoi(text); err != nil || q.offset < 0 || q.offset > mostOffset {
			return 0, q, fmt.Errorf("offset %q: allowed are 0 to %d; search for less", text, mostOffset)
		}
	}
	if text := values.Get("db"); text != "" {
		if db, err = strconv.Atoi(text); err != nil {
			return 0, q, fmt.Errorf("db %q is not a number", text)
		}
	}
	switch {
	case len(q.search) > longestSearch:
		return 0, q, fmt.Errorf("search of %d bytes, allowed are 0 to %d", len(q.search), longestSearch)
	case orders[q.order] == nil:
		return 0, q, fmt.Errorf("order %q: allowed are key, left, held, waiting", q.order)
	case !slices.Contains(s.databases(), db):
		return 0, q, fmt.Errorf("db %d is not in use by this daemon", db) // polling it would open connections to the masters
	}
	return db, q, nil
}

// databases returns those that can be viewed.
func (s *Server) databases() []int {
	in := append(s.options.Sources.Masters.Databases(), 0)
	slices.Sort(in)
	return slices.Compact(in)
}

// run sends until the viewer goes, loses the permission, or the endpoint closes.
func (w *watching) run(ctx context.Context) {
	ticker := time.NewTicker(newsEvery)
	defer ticker.Stop()
	next := w.lookout.first
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.server.lookouts.ctx.Done():
			return
		case <-ticker.C:
			if !w.events() {
				return
			}
		case <-next:
			s := w.lookout.last()
			if next = s.next; !w.view(s) {
				return
			}
		}
	}
}

// view sends the screen; it returns false when the stream has to end.
func (w *watching) view(s *seen) bool {
	if !w.visitor.May(commands.CategoryRead) { // users may have been reloaded
		return false
	}
	keyFilter := w.visitor.Sight()
	v, entries := w.lookout.view(s, w.question, keyFilter)
	w.lookout.show(entries)
	if whole := redlock.Key(w.question.search); keyFilter(whole) {
		w.lookout.seek(whole)
	}
	v.Draining = w.server.draining.Load()
	return w.send("view", v)
}

// streamedEvents is the content of "events".
type happened struct {
	Rows   []eventRow `json:"rows"`
	Missed uint64     `json:"missed"`
}

func (w *watching) events() bool {
	var all []redlock.Event
	var missed uint64
	all, w.heard, missed = w.lookout.news.after(w.heard)
	rows := eventViews(all, w.visitor.Sight())
	if len(rows) == 0 && missed == 0 {
		return true
	}
	return w.send("events", happened{rows, missed})
}

func (w *watching) send(kind string, what any) bool {
	text, err := json.Marshal(what)
	if err != nil {
		w.server.options.Logger.Error("page data not encoded; this is a bug", "err", err)
		return false
	}
	control := http.NewResponseController(w.out)
	_ = control.SetWriteDeadline(time.Now().Add(readerTime)) // a test's recorder has none
	if _, err := fmt.Fprintf(w.out, "event: %s\ndata: %s\n\n", kind, text); err != nil {
		return false
	}
	return control.Flush() == nil
}
