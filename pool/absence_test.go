package pool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlockd/pool/admission"
)

func TestAbsence_SaysWhyAnAnswerDoesNotCount(t *testing.T) {
	p := &Pool{options: Options{
		Masters: []Master{{Name: "a", Address: "10.0.0.1:6379"}, {Name: "b:6379", Address: "b:6379"}}, MaxTTL: 10 * time.Second,
	}}
	p.masters.Store(&p.options.Masters)
	good, quarantined := Seal{Good: true}, Seal{Good: true, Quarantined: true, Age: 2 * time.Second}
	bad := func(err error) Seal { return Seal{Err: err} }
	reply := func(err error) Reply { return Reply{Kind: ReplyError, Err: err} }
	full := MasterError("OOM no room")
	for _, c := range []struct {
		answer Answer
		want   string
	}{
		{Answer{Reply: reply(errors.New("connection refused")), Seal: bad(errors.New("connection refused"))}, "down (connection refused)"},
		{Answer{Reply: reply(errStalled)}, "down (did not answer in time: it or the network stood still)"},
		{Answer{Reply: reply(admission.Unfitf("is a slave"))}, "refused (is a slave)"},
		{Answer{Reply: reply(errDrained)}, "draining (it is being drained)"},
		{Answer{Reply: reply(errQueueFull)}, "busy (queue full)"},
		{Answer{Reply: reply(errNoClocks)}, "dialing (waits for the clocks of a quorum of masters)"},
		{Answer{Seal: good}, "did not receive the command (the time for it was over)"},
		{Answer{Sent: true, Reply: reply(errStalled), Seal: bad(errStalled)}, "down (did not answer in time: it or the network stood still)"},
		{Answer{Sent: true, Reply: reply(errors.New("EOF")), Seal: bad(errors.New("EOF"))}, "down (EOF, before it answered)"},
		{Answer{Sent: true, Seal: bad(errLate)}, "late (answered too late to count)"},
		{Answer{Sent: true}, "late (answered too late to count)"},
		{Answer{Sent: true, Seal: bad(errSuspect)}, "suspect (its clock is under suspicion)"},
		{Answer{Sent: true, Seal: bad(fmt.Errorf("%w by 300 ms", errBehind))}, "behind (its clock is behind its estimate by 300 ms)"},
		{Answer{Sent: true, Seal: bad(errMemoryGone)}, "forgot (its seal is another one or gone (written anew by a change of the group or by another daemon; or its memory was flushed, swapped or replaced))"},
		{Answer{Sent: true, Seal: bad(fmt.Errorf("%w: register 1", errRolledBack))}, "rolled-back (its memory was rolled back: register 1)"},
		{Answer{Sent: true, Reply: reply(full), Seal: bad(fmt.Errorf("cannot raise its register: %w", full))}, "failing (cannot raise its register: OOM no room)"},
		{Answer{Sent: true, Reply: reply(full), Seal: good}, "answered an error (OOM no room)"},
		{Answer{Sent: true, Reply: reply(full)}, "answered an error (OOM no room)"},
		{Answer{Sent: true, Reply: number(1), Seal: quarantined}, "quarantined (its memory is new, votes in 10.1s)"},
		{Answer{Sent: true, Reply: number(7), Seal: good}, "answered something unexpected"},
	} {
		if got := p.Absence(&c.answer).String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.answer, got, c.want)
		}
	}
	for want, got := range map[string]string{
		"a=10.0.0.1:6379 has not answered yet": p.Absent(0, Absence{}),
		"b:6379 is not durable":                p.Absent(1, AbsentFor(errors.New("is not durable"), 0)),
		"b:6379 votes in 1.5s":                 p.Absent(1, AbsentFor(errors.New("votes in"), 1500*time.Millisecond)),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// It is noted for every lock beside a master that is away.
func TestAbsence_AllocatesNothing(t *testing.T) {
	p := &Pool{options: Options{MaxTTL: time.Second}}
	var noted [3]Absence
	cut := &Answer{Sent: true, Reply: Reply{Kind: ReplyError, Err: errStalled}, Seal: Seal{Err: errStalled}}
	quarantined := &Answer{Sent: true, Seal: Seal{Good: true, Quarantined: true}}
	if n := testing.AllocsPerRun(100, func() {
		noted[0], noted[1], noted[2] = p.Absence(cut), p.Absence(quarantined), AbsentFor(errLate, time.Second)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAbsence_OnlyASlowMasterAndAChangedOneAreDelayed(t *testing.T) {
	p := &Pool{options: Options{MaxTTL: time.Minute}}
	bad := func(err error) Answer { return Answer{Sent: true, Seal: Seal{Err: err}} }
	cut := func(err error) Answer { return Answer{Reply: Reply{Kind: ReplyError, Err: err}, Seal: Seal{Err: err}} }
	for _, c := range []struct {
		answer Answer
		want   bool
	}{
		{Answer{Sent: true}, true},
		{cut(errStalled), true},
		{bad(fmt.Errorf("%w: executed after 101 ms", errLate)), true},
		{bad(errUnobserved), true},
		{bad(errEstimateBehind), true},
		{bad(errSuspect), false},
		{bad(errMemoryGone), false},
		{cut(errMemoryGone), true}, // it is being dialled again
		{cut(errOtherEpoch), true},
		{bad(fmt.Errorf("cannot raise its register: %w", MasterError("OOM no room"))), false},
		{cut(errors.New("connection refused")), false},
		{cut(admission.Unfitf("is a slave")), false},
		{cut(errDrained), false},
		{Answer{Seal: Seal{Good: true}}, false},
		{Answer{Sent: true, Reply: number(1), Seal: Seal{Good: true, Quarantined: true}}, false},
	} {
		if why := p.Absence(&c.answer); why.Delayed() != c.want {
			t.Errorf("%s: delayed %v, want %v", why, why.Delayed(), c.want)
		}
	}
}
