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

	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	// maxStreams is how many pages are served at once; each costs some 20 kB a second,
	// and 20 ms of a core a second when there are a hundred thousand locks.
	maxStreams = 16
	// maxStreamsPerUser leaves some for others; without users it applies to an address.
	maxStreamsPerUser = maxStreams / 2
	// eventsInterval is how often events are sent.
	eventsInterval = 250 * time.Millisecond
	// sendTimeout is how long a viewer may take to receive a message.
	sendTimeout = 10 * time.Second
	// maxSearch is the length of the longest key.
	maxSearch = 512
)

// pageCounts counts the open pages of each user. The zero value is ready.
type pageCounts struct {
	mu     sync.Mutex
	byUser map[string]int
}

func (r *pageCounts) enter(user string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byUser[user] >= maxStreamsPerUser {
		return false
	}
	if r.byUser == nil {
		r.byUser = make(map[string]int)
	}
	r.byUser[user]++
	return true
}

func (r *pageCounts) leave(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byUser[user]--; r.byUser[user] == 0 {
		delete(r.byUser, user)
	}
}

// pageStream is the stream of one open page.
type pageStream struct {
	server    *Server
	user      access.HTTPUser
	query     query
	poller    *poller
	out       http.ResponseWriter
	lastEvent uint64 // the last event that was sent
}

// stream serves one page until it is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
	db, q, err := s.parseQuery(r)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error())
		return
	}
	user := visitor.Name()
	if user == "" {
		user, _ = origin(r.RemoteAddr)
	}
	if !s.openPages.enter(user) {
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages of this user are open already, the limit of this daemon for one user; close one", maxStreamsPerUser))
		return
	}
	defer s.openPages.leave(user)
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already, the limit of this daemon; close one", maxStreams))
		return
	}
	o := s.pollers.addViewer(db)
	if o == nil {
		writeText(w, http.StatusServiceUnavailable, "this daemon is stopping")
		return
	}
	defer s.pollers.removeViewer(o)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // else proxies would buffer it
	w.Header().Set("Connection", "close")     // the deadlines set here must not apply to another request
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the request has been read; nothing more comes
	one := &pageStream{server: s, user: visitor, query: q, poller: o, out: w}
	_, one.lastEvent, _ = o.events.after(0)
	one.run(r.Context())
}

// parseQuery reads the parameters of a page.
func (s *Server) parseQuery(r *http.Request) (db int, q query, err error) {
	values := r.URL.Query()
	q = query{search: values.Get("search"), order: values.Get("order")}
	if q.order == "" {
		q.order = "key"
	}
	if text := values.Get("offset"); text != "" {
		if q.offset, err = strconv.Atoi(text); err != nil || q.offset < 0 || q.offset > maxOffset {
			return 0, q, fmt.Errorf("offset %q: allowed are 0 to %d; search for less", text, maxOffset)
		}
	}
	if text := values.Get("db"); text != "" {
		if db, err = strconv.Atoi(text); err != nil {
			return 0, q, fmt.Errorf("db %q is not a number", text)
		}
	}
	switch {
	case len(q.search) > maxSearch:
		return 0, q, fmt.Errorf("search of %d bytes, allowed are 0 to %d", len(q.search), maxSearch)
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
func (w *pageStream) run(ctx context.Context) {
	ticker := time.NewTicker(eventsInterval)
	defer ticker.Stop()
	next := w.poller.first
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.server.pollers.ctx.Done():
			return
		case <-ticker.C:
			if !w.events() {
				return
			}
		case <-next:
			s := w.poller.snapshot()
			if next = s.next; !w.view(s) {
				return
			}
		}
	}
}

// view sends the screen; it returns false when the stream has to end.
func (w *pageStream) view(s *snapshot) bool {
	if !w.user.May(access.CategoryRead) { // users may have been reloaded
		return false
	}
	keyFilter := w.user.KeyFilter()
	v, entries := w.poller.view(s, w.query, keyFilter)
	w.poller.addKeys(entries)
	if whole := redlock.Key(w.query.search); keyFilter(whole) {
		w.poller.addKey(whole)
	}
	v.Draining = w.server.draining.Load()
	return w.send("view", v)
}

// streamedEvents is the content of "events".
type streamedEvents struct {
	Rows   []eventRow `json:"rows"`
	Missed uint64     `json:"missed"`
}

func (w *pageStream) events() bool {
	var all []redlock.Event
	var missed uint64
	all, w.lastEvent, missed = w.poller.events.after(w.lastEvent)
	rows := eventViews(all, w.user.KeyFilter())
	if len(rows) == 0 && missed == 0 {
		return true
	}
	return w.send("events", streamedEvents{rows, missed})
}

func (w *pageStream) send(kind string, what any) bool {
	text, err := json.Marshal(what)
	if err != nil {
		w.server.options.Logger.Error("page data not encoded; this is a bug", "err", err)
		return false
	}
	control := http.NewResponseController(w.out)
	_ = control.SetWriteDeadline(time.Now().Add(sendTimeout)) // a test's recorder has none
	if _, err := fmt.Fprintf(w.out, "event: %s\ndata: %s\n\n", kind, text); err != nil {
		return false
	}
	return control.Flush() == nil
}
