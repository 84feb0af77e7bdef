// Package diagnosis describes what is wrong, in words for an operator who was just woken up.
// The page and `redlockd top` show its verdict. It uses no clock and no connection.
package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"redlockd/pool"
	"redlockd/redlock"
)

// Levels of a headline.
const (
	LevelGood = "good" // nothing to do
	LevelWarn = "warn" // locks are granted, but something needs attention
	LevelBad  = "bad"  // no lock is granted
)

const (
	stateVoting = "voting"
	// startCard is about the one warning there is, --bootstrap that stays in force.
	startCard = "Starting a new group"
	// flapSpan is how far back lost votes count: two of them are flapping.
	flapSpan = 5 * time.Minute
	// settled is how long a master votes until its last outage needs no attention.
	settled = time.Minute
	// stuckAfter is how long a wait takes before the headline names its key.
	stuckAfter = 10 * time.Second
	// The headline counts the undecided requests of the last minute, second by second.
	recently, sampleInterval = time.Minute, time.Second
)

// Headline is the verdict: its level, and sentences.
type Headline struct {
	Level string   `json:"level"`
	Lines []string `json:"lines"`
	Cards []string `json:"cards"` // of each line: the heading in the runbook, "" for none
}

// warn adds a line that needs attention, and the card of the runbook that helps.
func (h *Headline) warn(card, format string, values ...any) {
	h.Lines, h.Cards = append(h.Lines, fmt.Sprintf(format, values...)), append(h.Cards, card)
	if h.Level == LevelGood {
		h.Level = LevelWarn
	}
}

// CardOf is the card of the runbook about a master in a state, "" for one that votes.
func CardOf(state string) string {
	switch state {
	case stateVoting, "dialing":
		return ""
	case "down":
		return "A master that is down"
	case "refused":
		return "Why a master is refused"
	case "draining", "drained":
		return "Taking a master out for maintenance"
	}
	return "A master's state"
}

// history keeps what the polls saw of one master.
type history struct {
	state  string
	age    time.Duration // of the present connection, or of the time without one
	since  time.Time     // when the outage began, while there is one
	reason string        // of the outage, the last that was reported: while it is dialled there is none
	losses []time.Time   // when it stopped voting
}

// histories by the master's name.
type histories map[string]*history

// reading is a counter at one moment.
type reading struct {
	at time.Time
	n  int64
}

// Record keeps what the polls of one daemon saw of its masters and requests.
type Record struct {
	masters   histories
	undecided []reading
}

// Poll adds the present state: the masters, and the counter of undecided requests.
func (r *Record) Poll(reports []redlock.MasterReport, undecided int64, now time.Time) Headline {
	if r.masters == nil {
		r.masters = histories{}
	}
	r.masters.note(reports, now)
	if n := len(r.undecided); n == 0 || now.Sub(r.undecided[n-1].at) >= sampleInterval {
		r.undecided = append(r.undecided, reading{now, undecided})
	}
	for now.Sub(r.undecided[0].at) > recently && len(r.undecided) > 1 {
		r.undecided = r.undecided[1:]
	}
	return diagnoseGroups(reports, r.masters, undecided-r.undecided[0].n, now)
}

// diagnoseGroups builds one headline of the masters of all groups.
func diagnoseGroups(reports []redlock.MasterReport, masters histories, undecided int64, now time.Time) Headline {
	groups := pool.ByGroup(reports)
	if len(groups) < 2 {
		return diagnose(reports, masters, pool.Quorum(len(reports)), undecided, now)
	}
	h, bad := Headline{Level: LevelGood}, 0
	for _, group := range groups {
		one := diagnose(group, masters, pool.Quorum(len(group)), 0, now)
		if one.Level == LevelBad {
			bad++
		}
		for i, line := range one.Lines {
			h.warn(one.Cards[i], "Group %s: %s", group[0].Group, line)
		}
	}
	h.warnUndecided(undecided)
	if bad == len(groups) {
		h.Level = LevelBad
	}
	return h
}

// State returns since when a polled master has been in its state, and why. A master that is
// dialled again and again has one outage.
func (r *Record) State(m *redlock.MasterReport, now time.Time) (since time.Duration, detail string) {
	since, detail = m.Since, m.Detail
	if h := r.masters[m.Name]; m.State != stateVoting {
		if since = now.Sub(h.since); h.reason != "" {
			detail = h.reason
		}
	}
	return since, detail
}

// note adds the present state of the masters.
func (hs histories) note(reports []redlock.MasterReport, now time.Time) {
	for i := range reports {
		m := &reports[i]
		h, began := hs[m.Name], now.Add(-m.Since)
		if h == nil {
			h = &history{since: began}
			hs[m.Name] = h
		}
		if h.state == stateVoting && (m.State != stateVoting || m.Since < h.age) {
			h.losses, h.since, h.reason = append(h.losses, now), now, ""
		}
		for len(h.losses) > 0 && now.Sub(h.losses[0]) > flapSpan {
			h.losses = h.losses[1:]
		}
		if h.state, h.age = m.State, m.Since; m.State == stateVoting {
			continue
		}
		if began.Before(h.since) {
			h.since = began
		}
		if reason := reasonOf(m.Detail); reason != "" {
			h.reason = reason
		}
	}
}

// reasonOf returns the detail of pool.Status without the times in it, which are shown
// elsewhere, and Go's errors in plain words.
func reasonOf(reason string) string {
	if at := strings.LastIndexAny(reason, ",;"); at > 0 && (strings.HasSuffix(reason, " ago") || strings.HasPrefix(reason[at+1:], " votes in ")) {
		reason = reason[:at]
	}
	if strings.HasSuffix(reason, "context deadline exceeded") {
		return "it can be reached but does not answer"
	}
	return reason
}

// outageText describes why a master does not vote.
func outageText(m *redlock.MasterReport, h *history, now time.Time) string {
	text := fmt.Sprintf("%s has been %s for %s", m.Name, m.State, seconds(now.Sub(h.since)))
	if m.Left > 0 {
		text = fmt.Sprintf("%s is %s for another %s", m.Name, m.State, seconds(m.Left))
	}
	if h.reason != "" {
		text += " (" + h.reason + ")"
	}
	return text
}

func diagnose(reports []redlock.MasterReport, masters histories, quorum int, undecided int64, now time.Time) Headline {
	var missing, flapping, again []string
	oldest := time.Duration(0)
	for i := range reports {
		oldest = max(oldest, reports[i].Since)
	}
	for i := range reports {
		m, h := &reports[i], masters[reports[i].Name]
		if m.State != stateVoting {
			missing = append(missing, outageText(m, h, now))
		}
		switch n := len(h.losses); {
		case n > 1:
			flapping = append(flapping, fmt.Sprintf("%s stopped voting %d times", m.Name, n))
		case m.State == stateVoting && m.Since < settled && (n > 0 || oldest-m.Since > settled):
			again = append(again, fmt.Sprintf("%s for %s", m.Name, seconds(m.Since)))
		}
	}
	n, voting, list := len(reports), len(reports)-len(missing), strings.Join(missing, ", ")
	h := Headline{Level: LevelGood}
	switch {
	case voting < quorum:
		h.Level = LevelBad
		h.warn("Losing a quorum", "No lock can be granted: %d of %d masters can vote, %d are needed: %s.", voting, n, quorum, list)
	case len(missing) > 0:
		h.warn("A master's state", "%d of %d masters cannot vote: %s.", len(missing), n, list)
		h.warn("", "Locks are granted: %d vote and %d are needed. %d more may fail.", voting, quorum, voting-quorum)
	}
	if voting >= quorum {
		h.warnForgotten(reports, quorum)
	}
	if own := pool.OwnList(reports); own != "" {
		h.warn("Changing the masters", "The masters in use are not those of this daemon's settings, which have %s: write the list that redlockd check prints into them.", Printable(own))
	}
	if len(flapping) > 0 {
		h.warn("A master's state", "Flapping in the last %d minutes: %s.", flapSpan/time.Minute, strings.Join(flapping, ", "))
	}
	if len(again) > 0 {
		h.warn("", "Voting again: %s so far.", strings.Join(again, ", "))
	}
	h.warnUndecided(undecided)
	return h
}

// warnForgotten reports masters that lost their memory: they vote for locks before they vote on what
// they may have forgotten.
func (h *Headline) warnForgotten(reports []redlock.MasterReport, quorum int) {
	if work, in := pool.WorkVoters(reports); work < quorum && in > 0 {
		h.warn("Ids or work that stopped", "New work (DWORK) is refused for another %s: %d of %d masters may vote on it, %d are needed; the others lost their memory.", seconds(in), work, len(reports), quorum)
	}
	if ids, possible := pool.CounterVoters(reports); possible && ids < quorum {
		h.warn("Ids or work that stopped", "Counters (DNEXTID) that are new, or were idle, get LOSTSTATE: %d of %d masters remember all counters, %d are needed.", ids, len(reports), quorum)
	}
}

// WarnUnread reports that the daemon refused to show something: its absence here says nothing.
func (h *Headline) WarnUnread(what, why string) {
	if why != "" {
		h.warn("", "Unknown: %s (%s).", what, why)
	}
}

// WarnSlots reports slots that have left a group of masters in a move that was not finished.
func (h *Headline) WarnSlots(unfinished int64) {
	if unfinished > 0 {
		h.warn("Several groups", "Nothing is granted in %d slots: a move of slots was not finished (redlockd slots prints the command).", unfinished)
	}
}

// WarnDaemons reports daemons that the masters list with a former configuration, or with none.
func (h *Headline) WarnDaemons(stale int64) {
	if stale > 0 {
		h.warn("A daemon with other settings", "Daemons that grant nothing, because their configuration is not that of the masters: %d (INFO masters names them).", stale)
	}
}

func (h *Headline) warnUndecided(n int64) {
	if n > 0 {
		h.warn("What a client reads", "Undecided lock requests in the last minute (NOQUORUM or EXPIRED): %d.", n)
	}
}

// Finish adds what is good, and a warning, which comes first unless there is something worse.
func (h *Headline) Finish(masters int, warning string) {
	if h.Level == LevelGood {
		h.Lines, h.Cards = []string{fmt.Sprintf("All %d masters vote.", masters)}, []string{""}
	}
	switch {
	case warning == "":
	case h.Level == LevelGood:
		h.Level, h.Lines, h.Cards = LevelWarn, append([]string{warning}, h.Lines...), append([]string{startCard}, h.Cards...)
	default:
		h.warn(startCard, "%s", warning)
	}
}

// StuckKeys returns the keys with the longest wait of those that take too long, and how many
// requests wait for each key. The first of waiting has waited longest.
func StuckKeys(waiting []redlock.Waiting, keyFilter func(redlock.Key) bool) (keys []redlock.Key, requests map[redlock.Key]int) {
	requests = map[redlock.Key]int{}
	for i := range waiting {
		for _, key := range waiting[i].Keys {
			if requests[key]++; i == 0 && waiting[i].Since >= stuckAfter && keyFilter(key) {
				keys = append(keys, key)
			}
		}
	}
	return keys, requests
}

// Lock is a lock that requests wait for. Holders describes its holders, "" if none is shown: only if State
// is LockFree, it has none.
type Lock struct {
	Key     redlock.Key
	State   redlock.LockState
	Holders string
	Fence   redlock.Fence // the highest of the holders, 0 if it is not known
}

// holds is the part of a sentence about who has a lock.
func (l *Lock) holds(now time.Time) string {
	switch {
	case l.State == redlock.LockForeign:
		return "has data that is no lock,"
	case l.State == redlock.LockUndecided && l.Holders != "":
		return "may be held by " + l.Holders + " (too few masters answered),"
	case l.State == redlock.LockUndecided:
		return "has a holder that is unknown at the moment (too few masters answered),"
	case l.Holders == "":
		return "is not held by a client on any master,"
	case l.Fence > 0: // the masters' time of the grant in µs
		return fmt.Sprintf("has been held %s by %s", seconds(now.Sub(time.UnixMicro(int64(l.Fence)))), l.Holders)
	}
	return "is held by " + l.Holders
}

// WarnStuck names the key that a request waits for, its holder and the number of requests.
func (h *Headline) WarnStuck(locks []Lock, requests map[redlock.Key]int, longest time.Duration, now time.Time) {
	if len(locks) == 0 {
		return
	}
	// Of several keys some are free: the one that is held comes first, then one that is not known to be free.
	at := slices.IndexFunc(locks, func(l Lock) bool { return l.State == redlock.LockHeld })
	if at < 0 {
		at = max(0, slices.IndexFunc(locks, func(l Lock) bool { return l.State != redlock.LockFree }))
	}
	l := &locks[at]
	h.warn("A lock that is not released", "Key %s %s with %d waiting, the first for %s.", Printable(string(l.Key)), l.holds(now), requests[l.Key], seconds(longest))
}

func seconds(d time.Duration) time.Duration { return max(d, 0).Round(time.Second) }

// Holder describes a holder, as far as it is known. Everything but Token is from its note, and may be "".
type Holder struct {
	Meta, Name, Client, Daemon string
	Token                      string // its hash
}

// Words are META and the client of a holder, as far as its note has them, else the hash of
// its token.
func (h Holder) Words() (words [2]string) {
	client := h.Client
	if client == "" && h.Daemon != "" {
		client = "through " + h.Daemon
	}
	words = [2]string{Printable(h.Meta), Printable(strings.TrimSpace(h.Name + " " + client))}
	if words == [2]string{} {
		words[1] = "token " + h.Token
	}
	return words
}

// Text describes the holders of a lock in a sentence; h is the first of count.
func (h Holder) Text(count int) string {
	if count != 1 {
		return fmt.Sprintf("%d holders", count)
	}
	words := h.Words()
	if words[0] == "" || words[1] == "" {
		return words[0] + words[1]
	}
	return words[0] + " (" + words[1] + ")"
}

// Printable makes a text that others chose fit for people. Invisible characters, such as
// marks that change the direction of writing, are escaped as in Go, and the text is quoted
// then.
func Printable(text string) string {
	invisible := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, invisible) || strings.TrimSpace(text) != text {
		return strconv.Quote(text)
	}
	return text
}
