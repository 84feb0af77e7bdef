package pool

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAdmit_ReadsEveryAnswerOfTheScript(t *testing.T) {
	g := &Group{fingerprint: "format=v1/group=a", sealKey: "redlockd:seal"}
	identity := "abc 0123 1700 1 " + g.fingerprint
	a, err := g.readAdmission("a", list(text("OK"), text(identity), text("1800"), text("42")))
	if err != nil || a.incarnation.Identity != identity || a.incarnation.ID != "0123" || a.score != 42 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := g.readAdmission("a", list(text("OK"), text(identity), number(1800), number(7))); err != nil || a.score != 7 {
		t.Errorf("a score as an integer: %+v, %v", a, err)
	}
	for _, c := range []struct {
		reply Reply
		says  string
	}{
		{list(text("REPLICA"), text("slave")), "is a slave"},
		{list(text("PROMOTED"), text("1234")), "second_repl_offset 1234"},
		{list(text("CLOCK"), text("1500000")), "+1500 ms off"},
		{list(text("CLOCK"), text("-700000")), "-700 ms off"},
		{list(text("FINGERPRINT"), text("format=v1/group=b/master=a")), "group is a here and b there"},
		{list(text("FINGERPRINT"), text("format=v1/group=a/master=c")), "master is a here and c there"},
		{list(text("FOREIGN"), text("string")), "redlockd:seal in database 0 holds a string"},
		{list(text("HELLO"), text("there")), `"HELLO"`},
		{refusal("NOPERM this user has no permissions to run the 'eval' command"), "NOPERM"},
		{Reply{}, "unexpected"}, {number(1), "unexpected"}, {text("OK"), "unexpected"}, {list(text("OK")), "unexpected"},
		{list(text("OK"), text(identity), text("1800")), "unexpected"},
		{list(text("OK"), text("retired"), text("1800"), text("1")), "unexpected"},
		{list(text("OK"), text(identity), text("1800"), text("many")), "unexpected"},
		{list(text("OK"), text(identity), text("1800"), Reply{}), "unexpected"},
		{list(text("OK"), list(), text("1800"), text("1")), "unexpected"},
	} {
		_, err := g.readAdmission("a", c.reply)
		var reason *unfit
		if !errors.As(err, &reason) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want a lasting reason that says %q", c.reply, err, c.says)
		}
	}
}

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
			if len(words) != 12 || words[3] != s.group.sealKey || words[5] != "500000" || words[6] != "0" ||
				len(words[7]) != 20 || words[8] != forMaster(s.group.fingerprint, "a") || words[9] != "" || words[10] != "0" {
				t.Errorf("told %q", words[2:])
			}
			floor, ok := text(words[11]).Number()
			if !ok || floor < s.masters[1].register-int64(10*time.Second/time.Microsecond) {
				t.Errorf("floor %q, want the highest register seen", words[11])
			}
		}
		if a, b := newIncarnationID(), newIncarnationID(); a == b {
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
		g := &Group{fingerprint: fingerprint(testOptions(), 0), sealKey: "redlockd:seal"}
		r := anyReply(&data, 0)
		a, err := g.readAdmission("a", r)
		if (err == nil) != (a.incarnation != nil) {
			t.Fatalf("%+v: incarnation %v, error %v", r, a.incarnation, err)
		}
		if err == nil && (a.incarnation.Identity != r.Items[1].Str || a.incarnation.ID == "" && !strings.Contains(a.incarnation.Identity, "  ")) {
			t.Fatalf("%+v was read as %+v", r, a.incarnation)
		}
		volatile(r, "")
		var facts serverInfo
		_ = facts.readClock(told{func([]string) Reply { return r }}, newHandClock())
	})
}
