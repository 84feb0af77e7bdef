package admin

// view.go answers: what is one viewer told? What all share is cut down to the
// keys that the viewer may see, and written as the page's script reads it.

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
		Name     string  `json:"name"`
		Address  string  `json:"address"`
		State    string  `json:"state"`
		Detail   string  `json:"detail"`
		Since    int64   `json:"since"` // of the state, or since it does not vote
		Left     int64   `json:"left"`  // of the quarantine
		Whole    int64   `json:"whole"` // quarantine, as far as it was seen
		Version  string  `json:"version"`
		Durable  bool    `json:"durable"`
		Queued   int     `json:"queued"`
		InFlight int     `json:"in_flight"`
		Owed     int     `json:"owed"`
		Yes      int64   `json:"yes"`
		No       int64   `json:"no"`
		Silent   int64   `json:"silent"`
		Trips    []int64 `json:"trips"` // p99
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
		All  int         `json:"all"` // that the viewer may see; of more than a thousand those of the longest
	}
	waiterRow struct {
		ID    string   `json:"id"`
		Keys  []string `json:"keys"`
		Mode  string   `json:"mode"`
		Fair  bool     `json:"fair"`
		Place int      `json:"place"`
		Who   string   `json:"who"`
		Since int64    `json:"since"`
		Left  int64    `json:"left"`
	}
	eventRow struct {
		At    int64  `json:"at"`
		Word  string `json:"word"`
		Key   string `json:"key"`
		Fence string `json:"fence"`
		Mark  string `json:"mark"`
	}
)

// mostWaiterRows are sent of those who wait.
const mostWaiterRows = 50

// view is what a viewer with a question sees; entries are the locks in it.
func (o *lookout) view(s *seen, q question, sight func(redlock.Key) bool) (v view, entries []*entry) {
	f := s.list.find(q, sight)
	v = view{
		Quorum: o.sources.Masters.Quorum(), Charts: s.charts, InFlight: o.sources.Locks.InFlight(),
		Clients: o.sources.Clients().Connected, At: s.at.UnixMilli(),
		Locks: lockList{
			Rows: []lockRow{}, Matches: f.matches, Total: f.total, Offset: q.offset, Page: pageSize,
			Complete: s.list.complete, Full: s.list.full, Trouble: s.trouble,
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
		if row, ok := waiterView(&s.waiting[i], sight); ok {
			if v.Waiters.All++; len(v.Waiters.Rows) < mostWaiterRows {
				v.Waiters.Rows = append(v.Waiters.Rows, row)
			}
		}
	}
	v.Headline = diagnose(s.reports, s.gone, v.Quorum, o.stuck(s, sight), s.at).warned(o.sources.Warning)
	return v, f.entries
}

// stuck are the keys for which somebody has waited too long.
func (o *lookout) stuck(s *seen, sight func(redlock.Key) bool) (list []stuck) {
	at := map[redlock.Key]int{}
	for i := range s.waiting {
		w := &s.waiting[i]
		if w.Since < tooLong {
			continue
		}
		for _, key := range w.Keys {
			e := o.book.of(key)
			if _, known := at[key]; known || !sight(key) || e == nil && len(w.Keys) > 1 {
				continue // of several keys, those that nobody holds are not what is waited for
			}
			at[key] = len(list)
			list = append(list, stuckAt(key, e, w.Since, s.at))
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

func stuckAt(key redlock.Key, e *entry, longest time.Duration, now time.Time) stuck {
	one := stuck{key: shown(string(key)), longest: longest}
	if e == nil {
		return one
	}
	one.by = strconv.Itoa(e.count) + " holders"
	if e.count == 1 && len(e.holders) == 1 {
		one.by = holderWords(&e.holders[0])
		if e.holders[0].Note == nil {
			one.by += " (--lock-info would tell who)"
		}
	}
	began, exactly := e.heldSince()
	one.held, one.exactly = max(0, now.Sub(began)), exactly
	return one
}

// holderWords say who holds a lock, as far as anybody was told.
func holderWords(h *redlock.Holder) string {
	var about []string
	if n := h.Note; n != nil {
		for _, text := range []string{n.Client, n.Meta} {
			if text != "" {
				about = append(about, shown(text))
			}
		}
		if n.Client == "" && n.Daemon != "" {
			about = append(about, "through "+shown(n.Daemon))
		}
		if n.Name != "" && len(about) > 0 {
			return shown(n.Name) + " (" + strings.Join(about, ", ") + ")"
		}
		if len(about) > 0 {
			return strings.Join(about, ", ")
		}
	}
	return "token " + h.Token.Shown()
}

func masterView(m *redlock.MasterReport, s *seen) masterRow {
	row := masterRow{
		Name: m.Name, Address: m.Address, State: m.State, Detail: m.Detail, Since: m.Since.Milliseconds(),
		Version: m.Version, Durable: m.Durable, Queued: m.Queued, InFlight: m.InFlight, Owed: m.Owed,
		Yes: m.Votes.Yes, No: m.Votes.No, Silent: m.Votes.Silent, Trips: s.charts.masters[m.Name],
	}
	if one, absent := s.gone[m.Name]; absent {
		row.Since = s.at.Sub(one.since).Milliseconds()
		row.Left, row.Whole = m.Left.Milliseconds(), one.longer.Milliseconds()
		row.Detail = cmp.Or(one.reason, row.Detail)
	}
	return row
}

// modeWords are those of DINFO.
var modeWords = [...]string{redlock.Exclusive: "exclusive", redlock.Shared: "shared", redlock.Permits: "permits"}

func lockView(e *entry, now time.Time) lockRow {
	row := lockRow{
		ID: identify(e.key), Key: shown(string(e.key)), Mode: modeWords[e.mode], Holders: []string{}, Count: e.count,
		Left: max(0, e.until.Sub(now)).Milliseconds(), Waiting: max(e.waiters, e.queued),
	}
	switch {
	case e.unsure:
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

// waiterView leaves out the keys that the viewer may not see, and who waits for
// those alone.
func waiterView(w *redlock.Waiting, sight func(redlock.Key) bool) (row waiterRow, ok bool) {
	row = waiterRow{
		Mode: modeWords[w.Mode], Fair: w.Fair, Place: w.Place, Who: w.Who.Addr,
		Since: w.Since.Milliseconds(), Left: w.Left.Milliseconds(),
	}
	if w.Who.Name != "" {
		row.Who = w.Who.Name + " (" + w.Who.Addr + ")"
	}
	row.ID = strconv.FormatInt(w.Who.Client, 10)
	for _, key := range w.Keys {
		if sight(key) {
			row.Keys = append(row.Keys, shown(string(key)))
			row.ID += " " + identify(key)
		}
	}
	return row, len(row.Keys) > 0
}

// eventViews are the events of keys that the viewer may see, the oldest first.
func eventViews(events []redlock.Event, sight func(redlock.Key) bool) []eventRow {
	rows := []eventRow{}
	for _, e := range events {
		if !sight(e.Key) {
			continue
		}
		word, _, _ := strings.Cut(e.Text(), " ")
		row := eventRow{At: e.At.UnixMilli(), Word: word, Key: shown(string(e.Key)), Mark: e.Mark}
		if e.Fence > 0 {
			row.Fence = strconv.FormatInt(int64(e.Fence), 10)
		}
		rows = append(rows, row)
	}
	return rows
}

// identify names a key whatever bytes it has.
func identify(key redlock.Key) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func identified(id string) (redlock.Key, error) {
	key, err := base64.RawURLEncoding.DecodeString(id)
	return redlock.Key(key), err
}

// shown is a text that others chose, for people. What does not show itself, such
// as marks that turn the direction of writing, is written out as in Go, and then
// quotes tell that it is.
func shown(text string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, odd) || strings.TrimSpace(text) != text {
		return strconv.Quote(text)
	}
	return text
}
