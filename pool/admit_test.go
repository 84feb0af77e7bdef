package pool

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
)

func TestAdmit_TheScriptIsToldWhatTheDaemonKnows(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut, m.executed = true, nil })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut = false })
		s.clock.advance(2 * time.Second)
		for _, words := range s.masters[0].executed {
			if words[0] != "EVAL" {
				continue
			}
			first := s.pool.options.Configuration(1)
			if len(words) != 20 || words[14] != "0" || words[3] != s.group.sealKey || words[4] != admission.ConfigurationKey || words[6] != "500000" || words[7] != "0" ||
				len(words[8]) != 20 || words[9] != s.pool.options.Fingerprint(0, first.Mark(), "a") || words[10] != "" || words[11] != "0" ||
				words[16] != "default" || words[17] != "" || words[18] != "" {
				t.Errorf("told %q", words[2:])
			}
			floor, ok := text(words[12]).Number()
			if !ok || floor < s.masters[1].register-int64(10*time.Second/time.Microsecond) {
				t.Errorf("floor %q, want the highest register seen", words[12])
			}
		}
		if a, b := admission.NewIncarnationID(), admission.NewIncarnationID(); a == b {
			t.Errorf("two incarnation ids are both %s", a)
		}
	})
}

func TestAdmit_NoMasterIsAdmittedBeforeTheClocksOfAQuorumAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 5, Options{}, func(m *fakeMaster, i int) {
			if i > 1 {
				m.forbidden = errCut
			}
		})
		defer s.pool.Close()
		for _, m := range s.masters[:2] {
			for _, words := range m.executed {
				if words[0] == "EVAL" {
					t.Error("admitted with two clocks of five")
				}
			}
		}
		op := acquiring("key")
		s.send(op)
		if a := op.only(t, 0); a.Sent || !errors.Is(a.Reply.Err, errNoClocks) {
			t.Errorf("%+v, want that it waits for the clocks", a)
		}
		s.change(2, func(m *fakeMaster) { m.forbidden = nil })
		s.clock.advance(time.Second)
		if a := s.vote(0); !a.Seal.Good {
			t.Errorf("%+v with three clocks, want good", a.Seal)
		}
	})
}

// anyReply builds an arbitrary tree of replies from bytes.
func anyReply(data *[]byte, depth int) Reply {
	next := func() byte {
		if len(*data) == 0 {
			return 0
		}
		b := (*data)[0]
		*data = (*data)[1:]
		return b
	}
	switch next() % 8 {
	case 0:
		return Reply{}
	case 1:
		return number(int64(int8(next())) << (next() % 64))
	case 2, 3:
		n := min(int(next())%64, len(*data))
		s := string((*data)[:n])
		*data = (*data)[n:]
		return text(s)
	case 4:
		return text([]string{"OK", "CLOCK", "FINGERPRINT", "REPLICA", "a b 1 0 c", "1e300", "-inf", "9223372036854775807"}[next()%8])
	case 5:
		return refusal("ERR")
	}
	r := Reply{Kind: ReplyArray}
	for range next() % 6 {
		if depth < 4 {
			r.Items = append(r.Items, anyReply(data, depth+1))
		}
	}
	return r
}

// FuzzAdmission: whatever a lying master answers, it is read or refused.
func FuzzAdmission(f *testing.F) {
	f.Add([]byte{7, 4, 4, 0, 4, 4, 2, 1, '1', 2, 1, '1'})
	f.Add([]byte{6, 5, 4, 1, 2, 3, '-', '-', '1'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := anyReply(&data, 0)
		answering := replying{func([]string) Reply { return r }}
		a, err := admission.Admit(answering, admission.Request{})
		if (err == nil) != (a.Incarnation != nil) {
			t.Fatalf("%+v: incarnation %v, error %v", r, a.Incarnation, err)
		}
		if err == nil && (a.Incarnation.Identity != r.Items[1].Str || a.Incarnation.ID == "" && !strings.Contains(a.Incarnation.Identity, "  ")) {
			t.Fatalf("%+v was read as %+v", r, a.Incarnation)
		}
		admission.Volatile(r, "")
		var facts admission.ServerInfo
		_ = facts.ReadClock(answering, newHandClock())
	})
}

func TestProbe_AMasterThatAnswersNonsenseIsRefusedNotFollowed(t *testing.T) {
	for _, r := range nonsense() {
		for _, command := range []string{"CLIENT", "INFO", "CONFIG", "TIME", "EVAL", "SCRIPT"} {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, 3, Options{})
				defer s.pool.Close()
				s.change(0, func(m *fakeMaster) { falsify(command, r)(m); m.cut, m.runID = true, "another" })
				s.vote(0)
				s.change(0, func(m *fakeMaster) { m.cut = false })
				s.clock.advance(time.Second)
				if st := s.state(0); st == "voting" && command == "EVAL" {
					t.Errorf("%s answered with %+v: %s", command, r, st)
				}
			})
		}
	}
}

// nonsense are replies of every shape.
func nonsense() []Reply {
	out := []Reply{{}, number(-1), number(1 << 62), text(""), text("OK"), refusal("ERR no"), list(), list(Reply{}),
		list(text("OK")), list(text("OK"), text("x"), text("y"), text("z")), list(list(list()), number(1)),
		list(text("REPLICA"), Reply{}), list(text("CLOCK"), text("-")), list(text("FINGERPRINT"), text("///")),
		list(text("OK"), text("a b 1 1 f"), Reply{}, text("nan"), text("")), {Kind: ReplyKind(99)}}
	return append(out, list(out...))
}

// replying is a link that answers as a function does.
type replying struct{ answers func(args []string) Reply }

func (r replying) Close() {}

func (r replying) Exchange(commands []Command, replies []Reply) []Reply {
	for i := range commands {
		replies = append(replies, r.answers(commands[i].Args))
	}
	return replies
}
