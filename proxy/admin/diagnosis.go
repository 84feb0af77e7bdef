package admin

// diagnosis.go describes what is wrong, in words for an operator who was just woken up. It
// uses no clock and no HTTP.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockd/redlock"
)

// Levels of a headline.
const (
	levelGood = "good" // nothing to do
	levelWarn = "warn" // locks are granted, but something needs attention
	levelBad  = "bad"  // no lock is granted
)

// headline is the status at the top of the page.
type headline struct {
	Level string   `json:"level"`
	Lines []string `json:"lines"`
}

const (
	stateVoting      = "voting"
	stateQuarantined = "quarantined"
)

// outage is the time in which a master does not vote, as far back as there were viewers.
type outage struct {
	since      time.Time
	reason     string        // the last that was reported: while it is dialled there is none
	quarantine time.Duration // the longest remaining quarantine that was reported
}

// outages by the master's name.
type outages map[string]outage

// note adds the present state of the masters.
func (a outages) note(reports []redlock.MasterReport, now time.Time) {
	for i := range reports {
		m := &reports[i]
		if m.State == stateVoting {
			delete(a, m.Name)
			continue
		}
		one, known := a[m.Name]
		if began := now.Add(-m.Since); !known || began.Before(one.since) {
			one.since = began
		}
		if reason := reasonOf(m); reason != "" {
			one.reason = reason
		}
		one.quarantine = max(one.quarantine, m.Left)
		a[m.Name] = one
	}
}

// votesIn is a phrase of pool.Status.Detail.
const votesIn = "votes in "

// reasonOf returns the detail without the times in it, which are shown elsewhere.
func reasonOf(m *redlock.MasterReport) string {
	reason := m.Detail
	if at := strings.LastIndex(reason, ", "); at > 0 && (strings.HasSuffix(reason, " ago") || strings.HasPrefix(reason[at+2:], votesIn)) {
		reason = reason[:at]
	}
	return reason
}

// outageText describes why a master does not vote.
func outageText(m *redlock.MasterReport, a outage, now time.Time) string {
	reason := ""
	if a.reason != "" {
		reason = " (" + plainReason(a.reason) + ")"
	}
	ago := durationText(now.Sub(a.since))
	switch m.State {
	case stateQuarantined:
		return m.Name + " is quarantined " + durationText(m.Left) + " more" + reason
	case "refused":
		return m.Name + " has been refused for " + ago + reason
	case "draining", "drained":
		return m.Name + " is being drained" + reason
	case "failing":
		return m.Name + " answers but refuses to write" + reason
	case "suspect":
		return m.Name + " is suspect: its votes do not count" + reason
	case "dialing":
		if a.reason == "" {
			return m.Name + " is being dialled"
		}
	}
	return m.Name + " stopped answering " + ago + " ago" + reason
}

// plainReason translates errors of Go into plain words; the page's table has the rest.
func plainReason(reason string) string {
	if strings.HasSuffix(reason, "context deadline exceeded") {
		return "it can be reached but does not answer"
	}
	return reason
}

// stuckKey is a key with a wait that takes too long.
type stuckKey struct {
	key     string
	held    time.Duration // 0 = unknown
	exactly bool          // else at least
	by      string        // "" = it is not held, as far as the masters show
	waiting int
	longest time.Duration
}

// stuckAfter is how long a wait takes before the headline reports it.
const stuckAfter = 10 * time.Second

// maxStuck keys are named in the headline.
const maxStuck = 3

func (s *stuckKey) text() string {
	text := "key " + s.key
	if s.by == "" {
		text += " is not held by a client on any master,"
	} else {
		text += " has been held "
		if !s.exactly {
			text += "at least "
		}
		text += durationText(s.held) + " by " + s.by
	}
	return text + fmt.Sprintf(" with %d waiting, the first for %s", s.waiting, durationText(s.longest))
}

// diagnose builds the headline.
func diagnose(reports []redlock.MasterReport, gone outages, quorum int, stuckKeys []stuckKey, now time.Time) headline {
	var missing []string
	for i := range reports {
		if m := &reports[i]; m.State != stateVoting {
			missing = append(missing, outageText(m, gone[m.Name], now))
		}
	}
	n, voting := len(reports), len(reports)-len(missing)
	h := headline{Level: levelGood, Lines: []string{fmt.Sprintf("All %d masters vote.", n)}}
	switch list := strings.Join(missing, ", "); {
	case voting < quorum:
		h = headline{levelBad, []string{
			fmt.Sprintf("No lock can be granted: %d of %d masters can vote, %d are needed: %s.", voting, n, quorum, list),
		}}
	case len(missing) > 0:
		h = headline{levelWarn, []string{
			fmt.Sprintf("%d of %d masters cannot vote: %s.", len(missing), n, list),
			fmt.Sprintf("Locks are granted: %d vote and %d are needed. %s", voting, quorum, spareText(voting-quorum)),
		}}
	}
	slices.SortStableFunc(stuckKeys, func(a, b stuckKey) int { return int(b.longest/time.Millisecond - a.longest/time.Millisecond) })
	for i := range stuckKeys[:min(len(stuckKeys), maxStuck)] {
		line := stuckKeys[i].text() + "."
		h.Lines = append(h.Lines, strings.ToUpper(line[:1])+line[1:])
	}
	if more := len(stuckKeys) - maxStuck; more > 0 {
		h.Lines = append(h.Lines, fmt.Sprintf("%d more keys have been waited for longer than %s.", more, durationText(stuckAfter)))
	}
	if len(stuckKeys) > 0 && h.Level == levelGood {
		h.Level = levelWarn
	}
	return h
}

// withWarning adds a warning. It comes first unless there is something worse.
func (h headline) withWarning(warning string) headline {
	switch {
	case warning == "":
	case h.Level == levelGood:
		h = headline{levelWarn, append([]string{warning}, h.Lines...)}
	default:
		h.Lines = append(h.Lines, warning)
	}
	return h
}

func spareText(more int) string {
	switch more {
	case 0:
		return "None may fail any more."
	case 1:
		return "One more may fail."
	}
	return fmt.Sprintf("%d more may fail.", more)
}

// durationText formats a duration for people.
func durationText(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 120:
		return fmt.Sprintf("%d s", max(s, 0))
	case s < 2*60*60:
		return fmt.Sprintf("%d min", s/60)
	case s < 48*60*60:
		return fmt.Sprintf("%d h", s/3600)
	}
	return fmt.Sprintf("%d days", s/86400)
}
