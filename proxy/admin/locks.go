package admin

// locks.go lists locks, one step of the walk of DLOCKS at a time: a cursor, a pattern, the
// rights of the user. The page takes as many steps as it needs for its rows.

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// A step is followed by a rest of restFactor times its duration, at most maxRest. Steps of
// all pages are taken one after another, so they take 5 % of a master at most.
const restFactor, maxRest = 20, 200 * time.Millisecond

// locks serves a step: its locks, and the cursor of the next one, "0" after the last.
func (s *Server) locks(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
	db, ok := s.database(w, r)
	if !ok {
		return
	}
	select {
	case s.walkSlot <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	began := time.Now()
	defer func() {
		time.AfterFunc(min(restFactor*time.Since(began), maxRest), func() { <-s.walkSlot })
	}()
	query, rows := r.URL.Query(), []map[string]any{}
	cursor, count := cmp.Or(query.Get("cursor"), "0"), cmp.Or(query.Get("count"), "50")
	pattern, whole := searchPattern(query.Get("match"))
	reply, ok := s.run(r, visitor, db, "DLOCKS", cursor, "MATCH", pattern, "COUNT", count)
	if !ok || reply.Kind == commands.KindError {
		writeText(w, statusOf(reply.Text), reply.Text)
		return
	}
	var keys []redlock.Key
	if whole != "" && cursor == "0" && visitor.KeyFilter()(whole) {
		keys = append(keys, whole) // a lock with this name is found at once
	}
	for i, found := 0, reply.Items[1].Items; i < len(found); i += 4 { // key, mode, holders, ttl
		keys = append(keys, redlock.Key(found[i].Text))
	}
	for i, view := range s.readLocks(r, db, keys) {
		if row := lockRow(keys[i], &view); row != nil {
			rows = append(rows, row)
		}
	}
	writeJSON(w, map[string]any{"rows": rows, "next": reply.Items[0].Text})
}

// searchPattern returns the pattern for DLOCKS. A text without wildcards is searched for
// anywhere in a key, and may be the whole key.
func searchPattern(text string) (pattern string, whole redlock.Key) {
	if strings.ContainsAny(text, `*?\`) {
		return text, ""
	}
	if len(text) <= maxKey && !strings.HasPrefix(text, "redlockd:") {
		whole = redlock.Key(text)
	}
	return strings.ReplaceAll("*"+strings.ReplaceAll(text, "[", `\[`)+"*", "**", "*"), whole
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
