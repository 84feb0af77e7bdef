package admin

// api.go serves the page's JSON beside the list of locks: the user, the state of the daemon,
// one key on the masters, and the forced release. The last two are DINFO and DFORCE, so
// that categories, key patterns, rates and the log are the port's.

import (
	"cmp"
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/diagnosis"
	"redlockd/pool"
	"redlockd/redlock"
)

const (
	maxKey = 512
	// maxWaiting bounds the waiters that are read, in a millisecond, and maxWaiterRows those
	// that are sent.
	maxWaiting, maxWaiterRows = 1000, 50
)

// about serves what the page needs once.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, visitor access.HTTPUser) {
	writeJSON(w, map[string]any{
		"version": s.options.Sources.Version, "daemon": pool.DaemonName(), "user": visitor.Name(), "force": visitor.May(access.CategoryForce), "databases": s.databases(), "groups": s.groups(),
	})
}

// databases returns those that can be viewed: another one would open connections to the
// masters.
func (s *Server) databases() []int {
	in := []int{0}
	for _, g := range s.options.Sources.Groups {
		in = append(in, g.Masters.Databases()...)
	}
	slices.Sort(in)
	return slices.Compact(in)
}

// groups returns the names of the groups of masters, "" for an only one.
func (s *Server) groups() (names []string) {
	for _, g := range s.options.Sources.Groups {
		names = append(names, g.Name)
	}
	return names
}

// selection has the choice of a page: a database, and one group of masters or all.
type selection struct {
	db    int
	group int // its number; -1 = all
	keys  func(redlock.Key) bool
}

// selected reads the parameters db, 0 without it, and group, all without it, or writes an error.
// Its keys are those that the user may see.
func (s *Server) selected(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) (chosen selection, ok bool) {
	text, name := cmp.Or(r.URL.Query().Get("db"), "0"), r.URL.Query().Get("group")
	db, err := strconv.Atoi(text)
	chosen = selection{db, slices.Index(s.groups(), name), visitor.KeyFilter()}
	switch {
	case err != nil || !slices.Contains(s.databases(), db):
		writeText(w, http.StatusBadRequest, "db "+strconv.Quote(text)+" is no database that this daemon uses")
	case name == "":
		chosen.group = -1
		return chosen, true
	case chosen.group < 0:
		writeText(w, http.StatusBadRequest, "group "+strconv.Quote(name)+" is no group of this daemon")
	default:
		chosen.keys = func(key redlock.Key) bool { return s.options.Sources.GroupOf(key) == name && visitor.KeyFilter()(key) }
		return chosen, true
	}
	return chosen, false
}

// state serves everything but the list of locks. The parameter since is the number of the
// last event that the page has.
func (s *Server) state(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
	chosen, ok := s.selected(w, r, visitor)
	if !ok {
		return
	}
	db, keyFilter := chosen.db, chosen.keys
	watch := s.watches.of(db)
	if watch == nil {
		writeText(w, http.StatusServiceUnavailable, "this daemon is stopping")
		return
	}
	sources, now := &s.options.Sources, time.Now()
	figures, locks := sources.Snapshot(), sources.Latencies.locks.load()
	undecided := figures.Requests.NoQuorum + figures.Requests.Expired
	reports := sources.Locks.Reports(db)
	verdict, masters := watch.poll(reports, undecided, now)
	since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64) // else all
	events, last, dropped := watch.eventsAfter(since)
	waiting, all := sources.Locks.Waiting(db, keyFilter, maxWaiting)
	if stuck, requests := diagnosis.StuckKeys(waiting, keyFilter); len(stuck) > 0 {
		verdict.WarnStuck(waitedFor(stuck, s.readLocks(r, db, stuck)), requests, waiting[0].Since, now)
	}
	verdict.WarnDaemons(int64(len(pool.StaleDaemons(reports))))
	verdict.WarnSlots(int64(figures.UnfinishedSlots))
	verdict.Finish(len(masters), sources.Warning)
	waiters := []map[string]any{}
	for i := range waiting[:min(len(waiting), maxWaiterRows)] {
		waiters = append(waiters, waiterRow(&waiting[i], keyFilter))
	}
	writeJSON(w, map[string]any{
		"at": now.UnixMilli(), "headline": verdict, "masters": masters, "waiters": waiters, "waiting": all,
		"granted": figures.Locks.Acquired, "refused": figures.Requests.Refused, "undecided": undecided, "times": countsByBound(&locks),
		"events": eventRows(events, keyFilter), "last_event": last, "dropped_events": dropped,
		"daemons": len(pool.Daemons(reports)), "stale_daemons": daemonNames(pool.StaleDaemons(reports)),
		"held": figures.Locks.Held, "in_flight": figures.InFlight, "clients": figures.Clients.Connected, "draining": s.draining.Load(),
	})
}

type replyChan chan commands.Reply

func (c replyChan) Complete(r commands.Reply)                        { c <- r }
func (c replyChan) CompleteDeferred(deferred commands.DeferredReply) { c <- deferred.Reply() }

// run runs a command of the port for a user; ok is false when the page has gone.
func (s *Server) run(r *http.Request, visitor access.HTTPUser, db int, words ...string) (reply commands.Reply, ok bool) {
	host, _ := origin(r.RemoteAddr)
	client := &commands.Client{Addr: r.RemoteAddr, Host: host, Name: "page", User: visitor.Name(), DB: db, Proto: 3}
	sink := make(replyChan, 1) // the one reply must never block
	s.options.Commands.Dispatch(&commands.Call{Args: words, Client: client, Batch: new(redlock.Batch), Completer: sink})
	select {
	case reply = <-sink:
		return reply, true
	case <-r.Context().Done():
		return reply, false
	}
}

// command runs a command about a key, for a user with the category.
func (s *Server) command(word string) userHandler {
	return func(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
		chosen, ok := s.selected(w, r, visitor)
		if !ok {
			return
		}
		key, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("id"))
		if err != nil {
			writeText(w, http.StatusBadRequest, "a lock is named by db, a number, and id, its key in base64url: "+err.Error())
			return
		}
		switch reply, ok := s.run(r, visitor, chosen.db, word, string(key)); {
		case !ok:
		case reply.Kind == commands.KindError:
			writeText(w, statusOf(reply.Text), reply.Text)
		default:
			writeJSON(w, jsonValue(reply))
		}
	}
}

// sentAsJSON refuses what other sites' forms can send.
func sentAsJSON(serve userHandler) userHandler {
	return func(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			writeText(w, http.StatusUnsupportedMediaType, "only application/json is accepted")
			return
		}
		serve(w, r, visitor)
	}
}

// statusOf returns the HTTP status for the code of an error.
func statusOf(text string) int {
	code, _, _ := strings.Cut(text, " ")
	return cmp.Or(map[string]int{
		"NOPERM": http.StatusForbidden, "NOAUTH": http.StatusUnauthorized, "TRYLATER": http.StatusTooManyRequests,
		"NOQUORUM": http.StatusServiceUnavailable, "SHUTDOWN": http.StatusServiceUnavailable,
	}[code], http.StatusBadRequest)
}

// jsonValue converts a reply for JSON. Integers are texts: a script's numbers are not
// exact above 2⁵³.
func jsonValue(r commands.Reply) any {
	switch r.Kind {
	case commands.KindNil, commands.KindNilArray:
		return nil
	case commands.KindInt:
		return strconv.FormatInt(r.Int, 10)
	case commands.KindSimple, commands.KindBulk:
		return diagnosis.Printable(r.Text)
	case commands.KindMap:
		all := make(map[string]any, len(r.Items)/2)
		for i := 0; i+1 < len(r.Items); i += 2 {
			all[r.Items[i].Text] = jsonValue(r.Items[i+1])
		}
		return all
	}
	all := make([]any, len(r.Items))
	for i := range r.Items {
		all[i] = jsonValue(r.Items[i])
	}
	return all
}

// readLocks reads locks with holders, META, fence and queue. A lock that cannot be read is
// undecided.
func (s *Server) readLocks(r *http.Request, db int, keys []redlock.Key) []redlock.LockView {
	views, done := make([]redlock.LockView, len(keys)), make(chan struct{}, len(keys)) // no completion must ever block
	for i, key := range keys {
		s.options.Sources.Locks.ReadLock(db, key, func(v redlock.LockView, err error) {
			if views[i] = v; err != nil {
				views[i].State = redlock.LockUndecided
			}
			done <- struct{}{}
		})
	}
	for range keys {
		select {
		case <-done:
		case <-r.Context().Done():
			return nil // the completions still write
		}
	}
	return views
}
