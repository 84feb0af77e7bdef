package admission

import (
	"errors"
	"math"
	"strings"
	"testing"

	"redlockd/pool/wire"
)

func TestAdmit_ReadsEveryAnswerOfTheScript(t *testing.T) {
	q := Request{Fingerprint: "format=v1/group=a/master=a", SealKey: "redlockd:seal"}
	identity := "abc 0123 1700 1 " + q.Fingerprint
	a, err := q.read(list(text("OK"), text(identity), text("1800"), text("42"), text("c=9;b=7;")))
	if err != nil || a.Incarnation.Identity != identity || a.Incarnation.ID != "0123" || a.Score != 42 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := q.read(list(text("OK"), text(identity), number(1800), number(7), text(""))); err != nil || a.Score != 7 {
		t.Errorf("a score as an integer: %+v, %v", a, err)
	}
	for _, c := range []struct {
		reply wire.Reply
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
		{wire.Reply{}, "unexpected"}, {number(1), "unexpected"}, {text("OK"), "unexpected"}, {list(text("OK")), "unexpected"},
		{list(text("OK"), text(identity), text("1800")), "unexpected"},
		{list(text("OK"), text(identity), text("1800"), text("1")), "unexpected"},
		{list(text("OK"), text("retired"), text("1800"), text("1"), text("")), "unexpected"},
		{list(text("OK"), text(identity), text("1800"), text("many"), text("")), "unexpected"},
		{list(text("OK"), text(identity), text("1800"), wire.Reply{}, text("")), "unexpected"},
		{list(text("OK"), list(), text("1800"), text("1"), text("")), "unexpected"},
	} {
		_, err := q.read(c.reply)
		var reason *Unfit
		if !errors.As(err, &reason) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want a lasting reason that says %q", c.reply, err, c.says)
		}
	}
}

func TestAdmission_KnowsTheLowestRegisterSinceAProcess(t *testing.T) {
	a := Admission{processes: "d=40;c=30;b=x;a=20;0=1"} // the last one is cut off
	for run, want := range map[string]int64{"d": math.MaxInt64, "c": 40, "b": 30, "a": 30, "0": 20, "e": 20} {
		if got := a.LowestSince(run); got != want {
			t.Errorf("since %s: %d, want %d", run, got, want)
		}
	}
}
