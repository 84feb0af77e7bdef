// monitor reads what `redlockd top` shows from one daemon, with commands that only read.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands/diagnosis"
	"redlockd/proxy/resp"
	"redlockd/redlock"
)

const (
	readTimeout = 10 * time.Second
	// A refresh takes one step of the walk over the locks. It inspects what the step found and
	// the maxLeaders locks that were held longest before, so many by one write that this fits
	// the buffers of the connection.
	walkStep, maxLeaders, maxInspected = 100, 50, 50
)

// monitor keeps what a refresh needs of those before.
type monitor struct {
	daemons *daemons
	record  diagnosis.Record
	before  fields // INFO, nil before the first refresh
	trips   map[string]tripCounts
	cursor  string   // of the walk over the locks, "" before the first step
	walked  bool     // a walk came to its end
	leaders []string // keys of the locks that are held longest
}

// refresh reads everything once. Where the user may not send a command, its panel has the error.
func (m *monitor) refresh(ctx context.Context) (s snapshot, err error) {
	replies, err := m.daemons.doAll(ctx, readTimeout, []string{"INFO"}, []string{"DMASTERS"}, []string{"DWAITERS"},
		[]string{"DLOCKS", cmp.Or(m.cursor, "0"), "COUNT", strconv.Itoa(walkStep)})
	if err != nil {
		return s, err
	}
	info := infoFields(replies[0])
	if m.before["run_id"] != info["run_id"] {
		*m = monitor{daemons: m.daemons} // its figures are of another process
	}
	at := time.Now()
	if refusal(replies[0]) == "" {
		at = time.UnixMicro(info.sum("server_time_usec"))
	}
	waiting, waits := waitsPanel(replies[2])
	stuck, requests := diagnosis.StuckKeys(waiting, everyKey)
	keys, note := m.walk(replies[3])
	for _, key := range stuck {
		keys = append(keys, string(key))
	}
	views, err := m.inspect(ctx, append(keys, m.leaders...))
	if err != nil {
		return s, err
	}
	verdict, masters := m.mastersPanel(replies[1], info, at)
	if len(stuck) > 0 {
		verdict.WarnStuck(waitedFor(stuck, views), requests, waiting[0].Since, at)
	}
	verdict.WarnUnread("undecided requests, stale daemons and unfinished slots", refusal(replies[0]))
	verdict.WarnUnread("who waits, and for which key", refusal(replies[2]))
	verdict.WarnDaemons(info.sum("daemons_stale"))
	verdict.WarnSlots(info.sum("unfinished_slots"))
	verdict.Finish(len(masters.rows), info.text("redlockd_warning"))
	s = snapshot{title: m.title(info, at), verdict: verdict, figures: m.figures(info, refusal(replies[0])), panels: []panel{masters, waits, m.locksPanel(views, note, at)}}
	m.before = info
	return s, nil
}

func (m *monitor) title(info fields, at time.Time) string {
	return fmt.Sprintf("redlockd top: %s, database %d, version %s, up %s, %s", m.daemons.address(), m.daemons.database,
		cmp.Or(info.text("redlockd_version"), "–"), age(time.Duration(info.sum("uptime_in_seconds"))*time.Second), at.Format(time.TimeOnly))
}

func everyKey(redlock.Key) bool { return true } // the daemon sends what the user may see

// walk takes the reply to a step: its keys, and why the list of locks is not complete.
func (m *monitor) walk(reply any) (keys []string, note string) {
	step, _ := reply.([]any)
	if len(step) != 2 {
		m.cursor = ""
		return nil, "DLOCKS: " + cmp.Or(refusal(reply), "the answer is no step of a walk")
	}
	found, _ := step[1].([]any)
	for i := 0; i < len(found); i += 4 { // key, mode, holders, ttl
		keys = append(keys, fmt.Sprint(found[i]))
	}
	m.cursor = fmt.Sprint(step[0])
	if m.walked = m.walked || m.cursor == "0"; !m.walked {
		note = fmt.Sprintf("This list is partial: the walk over all locks goes on, by about %d a second.", walkStep)
	}
	return keys, note
}

// inspect returns the replies to DINFO by key: fields, or an error reply.
func (m *monitor) inspect(ctx context.Context, keys []string) (views map[string]any, err error) {
	slices.Sort(keys)
	views = map[string]any{}
	for some := range slices.Chunk(slices.Compact(keys), maxInspected) {
		commands := make([][]string, len(some))
		for i, key := range some {
			commands[i] = []string{"DINFO", key}
		}
		replies, err := m.daemons.doAll(ctx, readTimeout, commands...)
		if err != nil {
			return nil, err
		}
		for i, key := range some {
			views[key] = replies[i]
		}
	}
	return views, nil
}

// rates and gauges are names of figures, each with fields of INFO.
var (
	rates = [][]string{{"granted", "locks_acquired"}, {"refused", "locks_refused"}, {"undecided", "locks_no_quorum", "locks_expired"},
		{"released", "locks_released"}, {"extended", "locks_extended"}}
	gauges = [][]string{{"held", "locks_held"}, {"waiters", "waiters"}, {"holds", "holds"}, {"clients", "connected_clients"}}
)

// figures are the rates since the last refresh, and what there is now.
func (m *monitor) figures(info fields, refused string) (figures []string) {
	if refused != "" {
		return []string{"INFO: " + refused}
	}
	seconds := float64(info.sum("server_time_usec")-m.before.sum("server_time_usec")) / 1e6
	for _, f := range rates {
		rate := "–"
		if m.before != nil && seconds > 0 {
			rate = number(float64(info.sum(f[1:]...)-m.before.sum(f[1:]...))/seconds) + "/s"
		}
		figures = append(figures, f[0]+" "+rate)
	}
	for _, f := range gauges {
		figures = append(figures, f[0]+" "+info.text(f[1]))
	}
	return figures
}

// mastersPanel shows the masters; the verdict is that of the page.
func (m *monitor) mastersPanel(reply any, info fields, at time.Time) (verdict diagnosis.Headline, p panel) {
	p = panel{columns: newColumns("*MASTER -STATE SINCE P50 P99 CLOCK UNCOUNTED YES NO QUEUED RELEASES *NOTE"), note: refusal(reply)}
	list, _ := reply.([]any)
	if len(list) == 0 {
		return diagnosis.Headline{Level: diagnosis.LevelWarn, Lines: []string{"There is no verdict without DMASTERS."}}, p
	}
	reports := make([]redlock.MasterReport, len(list))
	for i, one := range list {
		f := newFields(one)
		reports[i].Group = diagnosis.Printable(f.text("group"))
		reports[i].Status = redlock.MasterStatus{
			Name: diagnosis.Printable(f.text("name")), State: f.text("state"), Detail: f.text("detail"), Since: f.milli("since_ms"), Left: f.milli("left_ms"),
			WorkLeft: f.milli("work_left_ms"), Counters: f.sum("counters") == 1, Durable: f.sum("durable") == 1,
			OwnList: f.text("own_list"),
		}
	}
	verdict = m.record.Poll(reports, info.sum("locks_no_quorum", "locks_expired"), at)
	before := m.trips
	m.trips = map[string]tripCounts{}
	for i, one := range list {
		f := newFields(one)
		trips, which := newTripCounts(f.text("rtt_counts")), reports[i].Group+" "+reports[i].Name
		m.trips[which] = trips
		trips = trips.since(before[which])
		since, detail := m.record.State(&reports[i], at)
		p.rows = append(p.rows, []string{
			strings.TrimSpace(reports[i].Group + " " + reports[i].Name), reports[i].State, age(since), trips.quantile(0.5), trips.quantile(0.99), f.micros("clock_us"),
			f.text("uncounted"), f.text("granted"), f.text("refused"), f.text("queued"), f.text("pending_releases"), cmp.Or(detail, f.text("address")),
		})
	}
	return verdict, p
}

// waitsPanel groups the waiting requests by key, the longest wait first.
func waitsPanel(reply any) (waiting []redlock.Waiting, p panel) {
	p = panel{columns: newColumns("*WAITED-FOR REQUESTS LONGEST *FIRST-CLIENT"), note: refusal(reply)}
	list, _ := reply.([]any)
	rows, requests := map[string]int{}, []int{}
	for _, one := range list {
		f := newFields(one)
		w := redlock.Waiting{Since: f.milli("waited-ms")}
		for _, item := range f.list("keys") {
			key := fmt.Sprint(item)
			w.Keys = append(w.Keys, redlock.Key(key))
			row, known := rows[key]
			if !known {
				row, rows[key], requests = len(p.rows), len(p.rows), append(requests, 0)
				p.rows = append(p.rows, []string{diagnosis.Printable(key), "", age(w.Since), diagnosis.Printable(strings.TrimSpace(f.text("name") + " " + f.text("addr")))})
			}
			requests[row]++
			p.rows[row][1] = strconv.Itoa(requests[row])
		}
		waiting = append(waiting, w)
	}
	return waiting, p
}

// waitedFor describes the locks that a request waits for. Of one that could not be read nothing is known.
func waitedFor(keys []redlock.Key, views map[string]any) (locks []diagnosis.Lock) {
	for _, key := range keys {
		f, state := newFields(views[string(key)]), redlock.LockUndecided
		switch f["state"] {
		case "free":
			state = redlock.LockFree
		case "held":
			state = redlock.LockHeld
		case "foreign":
			state = redlock.LockForeign
		}
		locks = append(locks, diagnosis.Lock{Key: key, State: state, Holders: f.holders(), Fence: redlock.Fence(f.sum("fence"))})
	}
	return locks
}

// locksPanel shows the locks that are held longest, and those without a fence, which is the
// masters' time of the grant, at the end.
func (m *monitor) locksPanel(views map[string]any, note string, at time.Time) panel {
	p, locks := panel{columns: newColumns("*LOCK HELD *HOLDER LEFT WAITING -MODE FENCE"), note: note}, map[string]fields{}
	for key, view := range views {
		if text := refusal(view); text != "" {
			p.note = "DINFO: " + text
		} else if f := newFields(view); f["state"] == "held" || f["state"] == "undecided" {
			locks[key] = f
		}
	}
	m.leaders = slices.SortedFunc(maps.Keys(locks), func(a, b string) int {
		return cmp.Or(cmp.Compare(uint64(locks[a].sum("fence")-1), uint64(locks[b].sum("fence")-1)), cmp.Compare(a, b))
	})
	if len(m.leaders) > maxLeaders {
		m.leaders, p.note = m.leaders[:maxLeaders], cmp.Or(p.note, fmt.Sprintf("These %d locks are held longest; there are more.", maxLeaders))
	}
	for _, key := range m.leaders {
		p.rows = append(p.rows, lockCells(key, locks[key], at))
	}
	return p
}

func lockCells(key string, f fields, at time.Time) []string {
	held, left, mode := "–", "–", cmp.Or(f.text("mode"), f.text("state"))
	if fence := f.sum("fence"); fence > 0 {
		held = age(at.Sub(time.UnixMicro(fence)))
	}
	if list := f.list("holders"); len(list) > 0 {
		left = age(newFields(list[0]).milli("ttl"))
	}
	if limit := f.text("limit"); limit != "" {
		mode += " " + f.text("count") + " of " + limit
	}
	waiting := strconv.FormatInt(max(f.sum("waiters"), f.sum("queue")), 10)
	return []string{diagnosis.Printable(key), held, cmp.Or(f.holders(), "–"), left, waiting, mode, cmp.Or(f.text("fence"), "–")}
}

// refusal is the text of an error reply, "" of others.
func refusal(reply any) string {
	refused, _ := reply.(resp.Error)
	return string(refused)
}
