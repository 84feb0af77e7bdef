package admin

// view.go builds the data for one viewer: the shared snapshot, reduced to the keys that
// the viewer may see, in the JSON form that the page's script reads.

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"redlockd/redlock"
)

// Times are integer milliseconds, round trips microseconds.
type (
	view struct {
		Headline headline    `json:"headline"`
		Quorum   int         `json:"quorum"`
		Masters  []masterRow `json:"masters"`
		Charts   charts      `json:"charts"`
		Locks    lockList    `json:"locks"`
		Waiters  waiterList  `json:"waiters"`
		InFlight int         `json:"in_flight"`
		Clients  int         `json:"clients"`
		Draining bool        `json:"draining"`
		At       int64       `json:"at"` // since 1970
	}
	masterRow struct {
		Name            string  `json:"name"`
		Address         string  `json:"address"`
		State           string  `json:"state"`
		Detail          string  `json:"detail"`
		Since           int64   `json:"since"` // of the state, or of the outage
		Left            int64   `json:"left"`  // of the quarantine
		Whole           int64   `json:"whole"` // quarantine, as far as it was polled
		Version         string  `json:"version"`
		Durable         bool    `json:"durable"`
		Queued          int     `json:"queued"`
		InFlight        int     `json:"in_flight"`
		PendingReleases int     `json:"pending_releases"`
		Yes             int64   `json:"yes"`
		No              int64   `json:"no"`
		Uncounted       int64   `json:"uncounted"`
		Trips           []int64 `json:"trips"` // p99
	}
	lockList struct {
		Rows     []lockRow `json:"rows"`
		Matches  int       `json:"matches"`
		Total    int       `json:"total"`
		Offset   int       `json:"offset"`
		Page     int       `json:"page"`
		Complete bool      `json:"complete"`
		Full     bool      `json:"full"`
		Trouble  string    `json:"trouble"`
	}
	lockRow struct {
		ID      string   `json:"id"`
		Key     string   `json:"key"`
		Mode    string   `json:"mode"`
		Holders []string `json:"holders"`
		Count   int      `json:"count"`
		Left    int64    `json:"left"`
		Held    int64    `json:"held"`
		Exactly bool     `json:"exactly"`
		Fence   string   `json:"fence"` // above 2⁵³ a script's numbers are not exact
		Waiting int      `json:"waiting"`
	}
	waiterList struct {
		Rows []waiterRow `json:"rows"`
		All  int         `json:"all"` // that the viewer may see; of more than a thousand the longest waits
	}
	waiterRow struct {
		ID     string   `json:"id"`
		Keys   []string `json:"keys"`
		Mode   string   `json:"mode"`
		Fair   bool     `json:"fair"`
		Place  int      `json:"place"`
		Client string   `json:"client"`
		Since  int64    `json:"since"`
		Left   int64    `json:"left"`
	}
	eventRow struct {
		At        int64  `json:"at"`
		Word      string `json:"word"`
		Key       string `json:"key"`
		Fence     string `json:"fence"`
		TokenHash string `json:"token_hash"`
	}
)

// maxWaiterRows bounds the waiters that are sent.
const maxWaiterRows = 50

// view returns a viewer's data for a query; entries are the locks in it.
func (o *poller) view(s *snapshot, q query, keyFilter func(redlock.Key) bool) (v view, entries []*cachedLock) {
	f := s.list.find(q, keyFilter)
	v = view{
		Quorum: o.sources.Masters.Quorum(), Charts: s.charts, InFlight: o.sources.Locks.InFlight(),
		Clients: o.sources.Clients().Connected, At: s.at.UnixMilli(),
		Locks: lockList{
			Rows: []lockRow{}, Matches: f.matches, Total: f.total, Offset: q.offset, Page: pageSize,
			Complete: s.list.complete, Full: s.list.full, Trouble: s.listErr,
		},
		Waiters: waiterList{Rows: []waiterRow{}},
	}
	for i := range s.reports {
		v.Masters = append(v.Masters, masterView(&s.reports[i], s))
	}
	for _, e := range f.entries {
		v.Locks.Rows = append(v.Locks.Rows, lockView(e, s.at))
	}
	for i := range s.waiting {
		if row, ok := waiterView(&s.waiting[i], keyFilter); ok {
			if v.Waiters.All++; len(v.Waiters.Rows) < maxWaiterRows {
				v.Waiters.Rows = append(v.Waiters.Rows, row)
			}
		}
	}
	v.Headline = diagnose(s.reports, s.outages, v.Quorum, o.stuckKeys(s, keyFilter), s.at).withWarning(o.sources.Warning)
	return v, f.entries
}

// stuckKeys returns the keys with a wait that takes too long.
func (o *poller) stuckKeys(s *snapshot, keyFilter func(redlock.Key) bool) (list []stuckKey) {
	at := map[redlock.Key]int{}
	for i := range s.waiting {
		w := &s.waiting[i]
		if w.Since < stuckAfter {
			continue
		}
		for _, key := range w.Keys {
			e := o.cache.get(key)
			if _, known := at[key]; known || !keyFilter(key) || e == nil && len(w.Keys) > 1 {
				continue // a wait for several keys does not wait for those that are free
			}
			at[key] = len(list)
			list = append(list, newStuckKey(key, e, w.Since, s.at))
		}
	}
	for i := range s.waiting {
		for _, key := range s.waiting[i].Keys {
			if n, known := at[key]; known {
				list[n].waiting++
			}
		}
	}
	return list
}

func newStuckKey(key redlock.Key, e *cachedLock, longest time.Duration, now time.Time) stuckKey {
	one := stuckKey{key: printable(string(key)), longest: longest}
	if e == nil {
		return one
	}
	one.by = strconv.Itoa(e.count) + " holders"
	if e.count == 1 && len(e.holders) == 1 {
		one.by = holderWords(&e.holders[0])
		if e.holders[0].Note == nil {
			one.by += " (--lock-info would show the client)"
		}
	}
	began, exactly := e.heldSince()
	one.held, one.exactly = max(0, now.Sub(began)), exactly
	return one
}

// holderWords describes the holder of a lock, as far as its note contains it.
func holderWords(h *redlock.Holder) string {
	var about []string
	if n := h.Note; n != nil {
		for _, text := range []string{n.Client, n.Meta} {
			if text != "" {
				about = append(about, printable(text))
			}
		}
		if n.Client == "" && n.Daemon != "" {
			about = append(about, "through "+printable(n.Daemon))
		}
		if n.Name != "" && len(about) > 0 {
			return printable(n.Name) + " (" + strings.Join(about, ", ") + ")"
		}
		if len(about) > 0 {
			return strings.Join(about, ", ")
		}
	}
	return "token " + h.Token.ShortHash()
}

func masterView(m *redlock.MasterReport, s *snapshot) masterRow {
	row := masterRow{
		Name: m.Name, Address: m.Address, State: m.State, Detail: m.Detail, Since: m.Since.Milliseconds(),
		Version: m.Version, Durable: m.Durable, Queued: m.Queued, InFlight: m.InFlight, PendingReleases: m.PendingReleases,
		Yes: m.Votes.Yes, No: m.Votes.No, Uncounted: m.Votes.Uncounted, Trips: s.charts.masters[m.Name],
	}
	if one, absent := s.outages[m.Name]; absent {
		row.Since = s.at.Sub(one.since).Milliseconds()
		row.Left, row.Whole = m.Left.Milliseconds(), one.quarantine.Milliseconds()
		row.Detail = cmp.Or(one.reason, row.Detail)
	}
	return row
}

// modeWords are those of DINFO.
var modeWords = [...]string{redlock.Exclusive: "exclusive", redlock.Shared: "shared", redlock.Permits: "permits"}

func lockView(e *cachedLock, now time.Time) lockRow {
	row := lockRow{
		ID: encodeKey(e.key), Key: printable(string(e.key)), Mode: modeWords[e.mode], Holders: []string{}, Count: e.count,
		Left: max(0, e.until.Sub(now)).Milliseconds(), Waiting: max(e.waiters, e.queued),
	}
	switch {
	case e.undecided:
		row.Mode = "undecided"
	case e.limit > 0:
		row.Mode += " " + strconv.Itoa(e.count) + " of " + strconv.Itoa(e.limit)
	}
	for i := range e.holders {
		row.Holders = append(row.Holders, holderWords(&e.holders[i]))
	}
	began, exactly := e.heldSince()
	row.Held, row.Exactly = max(0, now.Sub(began)).Milliseconds(), exactly
	if e.fence > 0 {
		row.Fence = strconv.FormatInt(int64(e.fence), 10)
	}
	return row
}

// waiterView leaves out the keys that the viewer may not see, and waiters for those alone.
func waiterView(w *redlock.Waiting, keyFilter func(redlock.Key) bool) (row waiterRow, ok bool) {
	row = waiterRow{
		Mode: modeWords[w.Mode], Fair: w.Fair, Place: w.Place, Client: w.Requester.Addr,
		Since: w.Since.Milliseconds(), Left: w.Left.Milliseconds(),
	}
	if w.Requester.Name != "" {
		row.Client = w.Requester.Name + " (" + w.Requester.Addr + ")"
	}
	row.ID = strconv.FormatInt(w.Requester.ID, 10)
	for _, key := range w.Keys {
		if keyFilter(key) {
			row.Keys = append(row.Keys, printable(string(key)))
			row.ID += " " + encodeKey(key)
		}
	}
	return row, len(row.Keys) > 0
}

// eventViews are the events of keys that the viewer may see, the oldest first.
func eventViews(events []redlock.Event, keyFilter func(redlock.Key) bool) []eventRow {
	rows := []eventRow{}
	for _, e := range events {
		if !keyFilter(e.Key) {
			continue
		}
		word, _, _ := strings.Cut(e.Text(), " ")
		row := eventRow{At: e.At.UnixMilli(), Word: word, Key: printable(string(e.Key)), TokenHash: e.TokenHash}
		if e.Fence > 0 {
			row.Fence = strconv.FormatInt(int64(e.Fence), 10)
		}
		rows = append(rows, row)
	}
	return rows
}

// encodeKey returns an identifier for a key of any bytes.
func encodeKey(key redlock.Key) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func decodeKey(id string) (redlock.Key, error) {
	key, err := base64.RawURLEncoding.DecodeString(id)
	return redlock.Key(key), err
}

// printable makes a text that others chose fit for people. Invisible characters, such as
// marks that change the direction of writing, are escaped as in Go, and the text is quoted
// then.
func printable(text string) string {
	invisible := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, invisible) || strings.TrimSpace(text) != text {
		return strconv.Quote(text)
	}
	return text
}
