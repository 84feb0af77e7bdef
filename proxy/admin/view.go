package admin

// view.go converts what the page shows to JSON. Times are integer milliseconds; a fence is
// a text, because a script's numbers are not exact above 2⁵³.

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"redlockd/commands/diagnosis"
	"redlockd/pool"
	"redlockd/redlock"
)

func masterRow(m *redlock.MasterReport, record *diagnosis.Record, now time.Time) map[string]any {
	since, detail := record.State(m, now)
	return map[string]any{
		"name": m.Name, "group": m.Group, "address": m.Address, "state": m.State, "detail": detail, "card": diagnosis.CardOf(m.State), "since": since.Milliseconds(), "left": m.Left.Milliseconds(),
		"epoch": m.Epoch, "configuration": m.Configuration, "version": m.Version, "durable": m.Durable, "queued": m.Queued, "in_flight": m.InFlight, "pending_releases": m.PendingReleases,
		"yes": m.Votes.Yes, "no": m.Votes.No, "uncounted": m.Votes.Uncounted, "trips": countsByBound(&m.RTT),
	}
}

func daemonNames(all []pool.Daemon) []string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = diagnosis.Printable(d.Name) + " (epoch " + strconv.FormatInt(d.Epoch, 10) + ")"
	}
	return names
}

// countsByBound are the counts of a histogram by the ends of their buckets, in µs.
func countsByBound(h *pool.Histogram) map[int64]uint64 {
	counts := map[int64]uint64{}
	for i, n := range h.Counts {
		if n > 0 {
			counts[pool.Bound(i).Microseconds()] = n
		}
	}
	return counts
}

// lockRow returns nil for what is no lock any more.
func lockRow(key redlock.Key, v *redlock.LockView) map[string]any {
	mode, fence, holders := v.ModeWord(), "", [][2]string{}
	switch {
	case v.State == redlock.LockUndecided:
		mode = "undecided"
	case v.State != redlock.LockHeld:
		return nil
	case v.Limit > 0:
		mode = fmt.Sprintf("%s %d of %d", mode, v.Count, v.Limit)
	}
	if f := v.HighestFence(); f > 0 {
		fence = strconv.FormatInt(int64(f), 10)
	}
	for i := range v.Holders[:min(len(v.Holders), 3)] { // DINFO shows all of them
		holders = append(holders, holderOf(&v.Holders[i]).Words())
	}
	return map[string]any{
		"id": encodeKey(key), "key": diagnosis.Printable(string(key)), "mode": mode, "holders": holders, "count": v.Count,
		"left": v.Left.Milliseconds(), "fence": fence, "waiting": max(v.Waiters, v.Queued),
	}
}

// holderOf is a holder as far as its note shows it.
func holderOf(h *redlock.Holder) diagnosis.Holder {
	n := cmp.Or(h.Note, &redlock.Note{})
	return diagnosis.Holder{Meta: n.Meta, Name: n.Name, Client: n.Client, Daemon: n.Daemon, Token: h.Token.ShortHash()}
}

// waitedFor describes the locks that a request waits for.
func waitedFor(keys []redlock.Key, views []redlock.LockView) []diagnosis.Lock {
	locks := make([]diagnosis.Lock, len(views))
	for i := range views {
		locks[i] = diagnosis.Lock{Key: keys[i], State: views[i].State, Fence: views[i].HighestFence()}
		if v := &views[i]; len(v.Holders) > 0 {
			locks[i].Holders = holderOf(&v.Holders[0]).Text(v.Count)
		}
	}
	return locks
}

// waiterRow leaves out the keys that the user may not see.
func waiterRow(w *redlock.Waiting, keyFilter func(redlock.Key) bool) map[string]any {
	id, keys := strconv.FormatInt(w.Requester.ID, 10), []string{}
	for _, key := range w.Keys {
		if keyFilter(key) {
			keys, id = append(keys, diagnosis.Printable(string(key))), id+" "+encodeKey(key)
		}
	}
	return map[string]any{
		"id": id, "keys": keys, "mode": w.Mode.Word(w.Reenters), "fair": w.Fair, "place": w.Place, "since": w.Since.Milliseconds(), "left": w.Left.Milliseconds(),
		"client": diagnosis.Printable(strings.TrimSpace(w.Requester.Name + " " + w.Requester.Addr)),
	}
}

// eventRows are the events of keys that the user may see, the oldest first.
func eventRows(events []redlock.Event, keyFilter func(redlock.Key) bool) []map[string]any {
	rows := []map[string]any{}
	for _, e := range events {
		if word, _, _ := strings.Cut(e.Text(), " "); keyFilter(e.Key) {
			rows = append(rows, map[string]any{"at": e.At.UnixMilli(), "word": word, "key": diagnosis.Printable(string(e.Key)), "token_hash": e.TokenHash})
		}
	}
	return rows
}

// encodeKey returns an identifier for a key of any bytes.
func encodeKey(key redlock.Key) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a client that has gone needs no reply
}

func writeJSON(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(what) // a client that has gone needs no reply
}
