package scripts_test

// what one master does with a piece of work, on a real
// server. After every step the record expires, or is not there.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
)

// workMaster is a master that runs the scripts of work.
type workMaster struct {
	t *testing.T
	s *faulty.Server
}

// workStep is one script with its answer. Durations among the arguments are
// moments of the master's clock, that far from now.
type workStep struct {
	file   string
	args   []any
	answer string // a "~" stands for any number of milliseconds
}

// memory is the incarnation of the master's memory, unless a story says another one.
const memory = "memory"

// Tokens as the engine makes them end in the time they were asked for.
const (
	first, rival, second, third = "F.1.3.5000.100", "R.1.3.5000.101", "S.2.3.5000.200", "T.3.3.5000.300"
	anew                        = "N.1.3.5000.900" // asked for when all of these had been forgotten
)

func try(token string, attempt, limit int, lease time.Duration) workStep {
	return workStep{"worktry", []any{token, attempt, limit, lease, lease + 5*time.Second, 5000, "text", memory}, ""}
}

func end(token string, attempt int, how string) workStep {
	return workStep{"workend", []any{token, attempt, how, 5 * time.Second, 3, 5000}, ""}
}

// leaving adds a result to an end.
func (s workStep) leaving(result string) workStep {
	s.args = append(s.args, result)
	return s
}

func extend(token string, attempt int, lease time.Duration) workStep {
	return workStep{"workextend", []any{token, attempt, lease, 5000, memory}, ""}
}

func undoing(token string) workStep { return workStep{"workundo", []any{token}, ""} }
func look() workStep                { return workStep{"workread", []any{memory}, ""} }

func (s workStep) answers(want string) workStep {
	s.answer = want
	return s
}

func (m *workMaster) run(s workStep) {
	m.t.Helper()
	now := redlocktest.On(m.t, m.s, "TIME").([]any)
	var sec, us int64
	fmt.Sscan(now[0].(string), &sec)
	fmt.Sscan(now[1].(string), &us)
	args := make([]any, len(s.args))
	for i, a := range s.args {
		if d, ok := a.(time.Duration); ok {
			a = sec*1000 + us/1000 + d.Milliseconds()
		}
		args[i] = a
	}
	if got := redlocktest.ScriptOn(m.t, m.s, s.file, "w", args...); !matches(got, s.answer) {
		m.t.Fatalf("%s%q: answered %s, want %s", s.file, s.args, got, s.answer)
	}
	if left := redlocktest.On(m.t, m.s, "PTTL", "w").(int64); left == -1 || left > 3_600_000 {
		m.t.Fatalf("after %s%q the record expires in %d ms", s.file, s.args, left)
	}
}

// matches compares word by word; "~" is a positive number.
func matches(got, want string) bool {
	g, w := strings.Fields(strings.Trim(got, "[]")), strings.Fields(strings.Trim(want, "[]"))
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		if g[i] != w[i] && (w[i] != "~" || strings.Trim(g[i], "0123456789") != "" || g[i] == "0") {
			return false
		}
	}
	return true
}

// lapse has the lease end a second ago, as if nothing had prolonged it.
func lapse() workStep { return workStep{file: "lapse"} }

const (
	running = 30 * time.Second // a lease that no test outlives
	over    = -time.Second
)

// in has the step met by the memory of another incarnation.
func (s workStep) in(incarnation string) workStep {
	s.args[len(s.args)-1] = incarnation
	return s
}

// former makes the record one of the former format, which names no incarnation.
func former() workStep { return workStep{file: "former"} }

// attempts are stories of who may start when.
func attempts() map[string][]workStep {
	return map[string][]workStep{
		"one at a time": {
			look().answers("[]"),
			try(first, 1, 3, running).answers("[1 1]"),
			try(rival, 1, 3, running).answers("[2 1 ~ " + first + "]"),
			try(second, 2, 3, running).answers("[2 1 ~ " + first + "]"),
			look().answers("[R 1 " + first + " ~ 3 5000 text ~ 0]"),
		},
		"numbers rise": {
			try(first, 1, 3, running).answers("[1 1]"),
			lapse(),
			try(rival, 1, 3, running).answers("[5 1]"),
			try(second, 2, 3, running).answers("[1 1]"),
			lapse(),
			try(rival, 1, 3, running).answers("[5 2]"),
			try(third, 3, 3, running).answers("[1 1]"),
			try("X.4.4.5000.400", 4, 3, running).answers("[2 3 ~ " + third + "]"),
			lapse(),
			try("X.4.4.5000.400", 4, 3, running).answers("[4 3]"),
		},
		"too late to start": {
			try(first, 1, 3, over).answers("[5 0]"),
			look().answers("[]"),
		},
		"given up": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(first, 1, "F").answers("1"),
			end(first, 1, "F").answers("1"),
			extend(first, 1, running).answers("0"),
			try(rival, 1, 3, running).answers("[5 1]"),
			try(second, 2, 3, running).answers("[1 0]"),
			end(first, 1, "F").answers("0"),
			end(first, 1, "D").answers("0"),
		},
		"undone": {
			try(first, 1, 3, running).answers("[1 1]"),
			undoing(rival).answers("0"),
			undoing(first).answers("1"),
			look().answers("[]"),
			undoing(first).answers("0"),
			try(rival, 1, 3, running).answers("[1 1]"),
			lapse(),
			try(second, 2, 3, running).answers("[1 1]"),
			undoing(second).answers("1"),
			look().answers("[R 1 " + rival + " 0 3 5000 text ~ 0]"),
			undoing(second).answers("0"),
			try(second, 2, 3, running).answers("[1 1]"),
		},
		"extended": {
			try(first, 1, 3, 20*time.Second).answers("[1 1]"),
			extend(first, 1, 60*time.Second).answers("1"),
			extend(first, 1, time.Second).answers("1"),
			try(second, 2, 3, running).answers("[2 1 ~ " + first + "]"),
			extend(rival, 1, running).answers("0"),
			lapse(),
			extend(first, 1, running).answers("0"),
			try(second, 2, 3, running).answers("[1 0]"),
		},
		// Its daemon died between asking and counting: what it left on a master
		// that has forgotten says nothing of what that master knew before.
		"granted to nobody": {
			try(first, 1, 3, running).answers("[1 1]"),
			lapse(),
			try(second, 2, 3, running).answers("[1 1]"),
			undoing(second).answers("1"),
			try(second, 2, 3, running).answers("[1 1]"),
			extend(second, 2, running).answers("1"),
			lapse(),
			try(third, 3, 3, running).answers("[1 0]"),
		},
	}
}

// ends are stories of who may end what.
func ends() map[string][]workStep {
	return map[string][]workStep{
		"done": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(rival, 1, "D").answers("0"),
			end(rival, 1, "F").answers("0"),
			end(first, 1, "D").answers("1"),
			end(first, 1, "D").answers("1"),
			end(first, 1, "F").answers("0"),
			end(second, 2, "D").answers("0"),
			try(second, 2, 3, running).answers("[3 1 0 " + first + "]"),
			extend(first, 1, running).answers("0"),
			undoing(first).answers("0"),
			look().answers("[D 1 " + first + " 0 3 5000 text ~ 1]"),
		},
		"done with a result": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(first, 1, "D").leaving("one").answers("1"),
			end(first, 1, "D").leaving("another").answers("1"),
			end(first, 1, "D").answers("1"),
			try(second, 2, 3, running).answers("[3 1 0 " + first + " one]"),
			look().answers("[D 1 " + first + " 0 3 5000 text ~ 1 one]"),
		},
		"done by the last, after its lease": {
			try(first, 1, 3, running).answers("[1 1]"),
			lapse(),
			end(first, 1, "D").answers("1"),
			try(second, 2, 3, running).answers("[3 1 0 " + first + "]"),
		},
		"taken over": {
			try(first, 1, 3, running).answers("[1 1]"),
			lapse(),
			try(second, 2, 3, running).answers("[1 1]"),
			end(first, 1, "D").answers("0"),
			end(first, 1, "F").answers("0"),
			extend(first, 1, running).answers("0"),
			undoing(first).answers("0"),
			look().answers("[R 2 " + second + " ~ 3 5000 text ~ 0]"),
		},
		"the end of an attempt that this master missed": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(second, 2, "F").answers("2"),
			extend(second, 2, running).answers("2"),
			end(second, 2, "D").answers("1"),
			look().answers("[D 2 " + second + " 0 3 5000 text ~ 1]"),
		},
		"the end of an attempt of which nothing is known": {
			end(first, 1, "F").answers("2"),
			extend(first, 1, running).answers("2"),
			look().answers("[]"),
			end(first, 1, "D").answers("1"),
			try(second, 2, 3, running).answers("[3 1 0 " + first + "]"),
		},
		"the end of an attempt of an earlier time": {
			try(anew, 1, 3, running).answers("[1 1]"),
			end(third, 3, "D").answers("0"),
			end(third, 3, "F").answers("0"),
			undoing(third).answers("0"),
			end(anew, 1, "D").answers("1"),
		},
	}
}

// incarnations are stories of a record that came back with an older file, so that a
// later end or attempt may be missing: what another incarnation wrote is no knowledge,
// and no proof of an attempt makes it knowledge.
func incarnations() map[string][]workStep {
	const later = "later"
	return map[string][]workStep{
		"an attempt": {
			try(first, 1, 3, running).answers("[1 1]"),
			extend(first, 1, running).answers("1"),
			look().answers("[R 1 " + first + " ~ 3 5000 text ~ 1]"),
			look().in(later).answers("[R 1 " + first + " ~ 3 5000 text ~ 0]"),
			try(second, 2, 3, running).in(later).answers("[2 1 ~ " + first + "]"),
			extend(first, 1, time.Minute).in(later).answers("3"),
			end(first, 1, "F").answers("1"),
			look().in(later).answers("[R 1 " + first + " 0 3 5000 text ~ 0]"),
			try(second, 2, 3, running).in(later).answers("[1 1]"),
		},
		"the next attempt": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(first, 1, "F").answers("1"),
			try(second, 2, 3, running).in(later).answers("[1 1]"),
			extend(second, 2, running).in(later).answers("1"),
			end(second, 2, "F").answers("1"),
			try(third, 3, 3, running).in(later).answers("[1 0]"),
		},
		"the next attempt, undone": {
			try(first, 1, 3, running).answers("[1 1]"),
			extend(first, 1, running).answers("1"),
			lapse(),
			try(second, 2, 3, running).in(later).answers("[1 1]"),
			undoing(second).answers("1"),
			end(first, 1, "F").answers("1"),
			try(second, 2, 3, running).in(later).answers("[1 1]"),
		},
		"work that is done": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(first, 1, "D").answers("1"),
			try(second, 2, 3, running).in(later).answers("[3 1 0 " + first + "]"),
			end(first, 1, "D").answers("1"),
		},
		"a record of the former format": {
			try(first, 1, 3, running).answers("[1 1]"),
			end(first, 1, "F").answers("1"),
			former(),
			look().answers("[R 1 " + first + " 0 3 5000 text ~ 0]"),
			end(first, 1, "F").answers("1"),
			try(second, 2, 3, running).answers("[1 1]"),
			former(),
			extend(second, 2, running).answers("3"),
		},
	}
}

func TestWorkScripts_TellTheStoryOfAnAttempt(t *testing.T) {
	m := &workMaster{t, faulty.Start(t)}
	for _, stories := range []map[string][]workStep{attempts(), ends(), incarnations()} {
		for name, steps := range stories {
			redlocktest.On(t, m.s, "DEL", "w")
			t.Log(name)
			for _, s := range steps {
				switch s.file {
				case "lapse":
					redlocktest.On(t, m.s, "HSET", "w", "e", time.Now().Add(over).UnixMilli())
				case "former":
					redlocktest.On(t, m.s, "HSET", "w", "u", "")
					redlocktest.On(t, m.s, "HDEL", "w", "l")
				default:
					m.run(s)
				}
			}
		}
	}
}

// An extension never shortens, neither the lease nor the record.
func TestWorkExtendScript_NeverShortens(t *testing.T) {
	m := &workMaster{t, faulty.Start(t)}
	m.run(try(first, 1, 3, 30*time.Second).answers("[1 1]"))
	lease, record := redlocktest.On(t, m.s, "HGET", "w", "e"), redlocktest.EndOn(t, m.s, "w")
	m.run(extend(first, 1, 10*time.Second).answers("1"))
	if got := redlocktest.On(t, m.s, "HGET", "w", "e"); got != lease {
		t.Errorf("the lease ends at %v, ended at %v before", got, lease)
	}
	if got := redlocktest.EndOn(t, m.s, "w"); got != record {
		t.Errorf("the record ends at %v, ended at %v before", got, record)
	}
}

func TestWorkScripts_LeaveAloneWhatIsNoWork(t *testing.T) {
	s := faulty.Start(t)
	for _, made := range [][]any{{"SET", "w", "text"}, {"LPUSH", "w", "a"}, {"HSET", "w", "name", "somebody's"}} {
		redlocktest.On(t, s, "DEL", "w")
		redlocktest.On(t, s, made...)
		before := redlocktest.On(t, s, "DUMP", "w")
		far := time.Now().Add(time.Hour).UnixMilli()
		for _, call := range []struct {
			file   string
			args   []any
			answer string
		}{
			{"worktry", []any{first, 1, 3, far, far, 5000, "", memory}, "[-1]"},
			{"workend", []any{first, 1, "D", far, 3, 5000}, "0"},
			{"workend", []any{first, 1, "F", far, 3, 5000}, "0"},
			{"workundo", []any{first}, "0"},
			{"workread", []any{memory}, "[-1]"},
		} {
			if got := redlocktest.ScriptOn(t, s, call.file, "w", call.args...); got != call.answer {
				t.Errorf("%v: %s answered %s, want %s", made, call.file, got, call.answer)
			}
		}
		if got := redlocktest.ScriptOn(t, s, "workextend", "w", first, 1, far, 5000, memory); got == "1" {
			t.Errorf("%v: was extended", made)
		}
		if after := redlocktest.On(t, s, "DUMP", "w"); after != before {
			t.Errorf("%v: was changed", made)
		}
	}
}
