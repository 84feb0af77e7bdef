package admin

// diagnosis.go answers: what is wrong, in words that somebody reads who was
// woken up? It knows no clock and nothing of HTTP.

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
	levelWarn = "warn" // locks are granted, and somebody should look
	levelBad  = "bad"  // no lock is granted
)

// headline is what stands at the top of the page.
type headline struct {
	Level string   `json:"level"`
	Lines []string `json:"lines"`
}

const (
	stateVoting      = "voting"
	stateQuarantined = "quarantined"
)

// absence is a master that does not vote, as far back as somebody has looked.
type absence struct {
	since  time.Time
	reason string        // the last that was given: while it is dialled there is none
	longer time.Duration // the longest quarantine that was seen to be left
}

// absences by the master's name.
type absences map[string]absence

// note takes what the masters are like now.
func (a absences) note(reports []redlock.MasterReport, now time.Time) {
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
		one.longer = max(one.longer, m.Left)
		a[m.Name] = one
	}
}

// votesIn is in the words of pool.Status.Detail.
const votesIn = "votes in "

// reasonOf is the detail without the times in it, which are told elsewhere.
func reasonOf(m *redlock.MasterReport) string {
	reason := m.Detail
	if at := strings.LastIndex(reason, ", "); at > 0 && (strings.HasSuffix(reason, " ago") || strings.HasPrefix(reason[at+2:], votesIn)) {
		reason = reason[:at]
	}
	return reason
}

// words say why a master does not vote.
func words(m *redlock.MasterReport, a absence, now time.Time) string {
	because := ""
	if a.reason != "" {
		because = " (" + plainly(a.reason) + ")"
	}
	ago := spell(now.Sub(a.since))
	switch m.State {
	case stateQuarantined:
		return m.Name + " is quarantined " + spell(m.Left) + " more" + because
	case "refused":
		return m.Name + " has been refused for " + ago + because
	case "draining", "drained":
		return m.Name + " is being drained" + because
	case "ailing":
		return m.Name + " answers but refuses to write" + because
	case "suspect":
		return m.Name + " is not believed" + because
	case "dialing":
		if a.reason == "" {
			return m.Name + " is being dialled"
		}
	}
	return m.Name + " stopped answering " + ago + " ago" + because
}

// plainly puts what only a programmer reads into words; the table has the rest.
func plainly(reason string) string {
	if strings.HasSuffix(reason, "context deadline exceeded") {
		return "it can be reached and says nothing"
	}
	return reason
}

// stuck is a lock for which somebody waits too long.
type stuck struct {
	key     string
	held    time.Duration // 0 = nobody knows since when
	exactly bool          // else at least
	by      string        // "" = it is not held, as far as can be seen
	waiting int
	longest time.Duration
}

// tooLong is how long somebody waits before the page speaks of it.
const tooLong = 10 * time.Second

// mostStuck are named in the headline.
const mostStuck = 3

func (s *stuck) words() string {
	text := "key " + s.key
	if s.by == "" {
		text += " is held by nobody the masters show,"
	} else {
		text += " has been held "
		if !s.exactly {
			text += "at least "
		}
		text += spell(s.held) + " by " + s.by
	}
	return text + fmt.Sprintf(" with %d waiting, the first for %s", s.waiting, spell(s.longest))
}

// diagnose is the headline.
func diagnose(reports []redlock.MasterReport, gone absences, quorum int, stuckAt []stuck, now time.Time) headline {
	var missing []string
	for i := range reports {
		if m := &reports[i]; m.State != stateVoting {
			missing = append(missing, words(m, gone[m.Name], now))
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
			fmt.Sprintf("Locks are granted: %d vote and %d are needed. %s", voting, quorum, spare(voting-quorum)),
		}}
	}
	slices.SortStableFunc(stuckAt, func(a, b stuck) int { return int(b.longest/time.Millisecond - a.longest/time.Millisecond) })
	for i := range stuckAt[:min(len(stuckAt), mostStuck)] {
		line := stuckAt[i].words() + "."
		h.Lines = append(h.Lines, strings.ToUpper(line[:1])+line[1:])
	}
	if more := len(stuckAt) - mostStuck; more > 0 {
		h.Lines = append(h.Lines, fmt.Sprintf("%d more keys have been waited for longer than %s.", more, spell(tooLong)))
	}
	if len(stuckAt) > 0 && h.Level == levelGood {
		h.Level = levelWarn
	}
	return h
}

// warned adds a warning. It stands first where nothing is worse.
func (h headline) warned(warning string) headline {
	switch {
	case warning == "":
	case h.Level == levelGood:
		h = headline{levelWarn, append([]string{warning}, h.Lines...)}
	default:
		h.Lines = append(h.Lines, warning)
	}
	return h
}

func spare(more int) string {
	switch more {
	case 0:
		return "None may fail any more."
	case 1:
		return "One more may fail."
	}
	return fmt.Sprintf("%d more may fail.", more)
}

// spell writes a duration as people say it.
func spell(d time.Duration) string {
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
