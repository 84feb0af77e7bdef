package admin

// locks.go lists locks, one step of the walk of DLOCKS at a time: a cursor, a pattern, the
// rights of the user. The page takes as many steps as it needs for its rows.

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
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
	chosen, ok := s.selected(w, r, visitor)
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
	pattern, plain := searchPattern(query.Get("match"))
	from := cursor
	if cursor == "0" {
		from = strconv.FormatUint(uint64(max(chosen.group, 0))<<redlock.CursorBits, 10)
	}
	reply, ok := s.run(r, visitor, chosen.db, "DLOCKS", from, "MATCH", pattern, "COUNT", count)
	if !ok || reply.Kind == commands.KindError {
		writeText(w, statusOf(reply.Text), reply.Text)
		return
	}
	var keys []redlock.Key
	whole := redlock.Key(plain)
	if plain != "" && len(plain) <= maxKey && !strings.HasPrefix(plain, "redlockd:") && cursor == "0" && chosen.keys(whole) {
		keys = append(keys, whole) // a lock with this name is found at once
	}
	if pattern == "*" && cursor == "0" { // what requests wait for matters most
		waiting, _ := s.options.Sources.Locks.Waiting(chosen.db, chosen.keys, maxWaiterRows)
		for i := range waiting {
			for _, key := range waiting[i].Keys {
				if chosen.keys(key) && !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	for i, found := 0, reply.Items[1].Items; i < len(found); i += 4 { // key, mode, holders, ttl
		if strings.Contains(found[i].Text, plain) && !slices.Contains(keys, redlock.Key(found[i].Text)) {
			keys = append(keys, redlock.Key(found[i].Text))
		}
	}
	for i, view := range s.readLocks(r, chosen.db, keys) {
		if row := lockRow(keys[i], &view); row != nil {
			rows = append(rows, row)
		}
	}
	next := reply.Items[0].Text
	if n, _ := strconv.ParseUint(next, 10, 64); chosen.group >= 0 && n>>redlock.CursorBits != uint64(chosen.group) {
		next = "0" // DLOCKS goes on with the next group
	}
	writeJSON(w, map[string]any{"rows": rows, "next": next})
}

// maxSearched bounds the bytes of a searched text in the pattern: DLOCKS takes 63
// behind the first wildcard.
const maxSearched = 63

// searchPattern returns the pattern for DLOCKS, and the text itself if it has no wildcards:
// it is then searched for anywhere in a key. Of a long text the pattern has only the end.
func searchPattern(text string) (pattern, plain string) {
	if strings.ContainsAny(text, `*?\`) {
		return text, ""
	}
	end := text[max(0, len(text)-maxSearched):]
	return strings.ReplaceAll("*"+strings.ReplaceAll(end, "[", `\[`)+"*", "**", "*"), text
}
