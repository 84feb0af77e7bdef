package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

const workSyntax = "DWORK key timeout MAX n [WAIT ms] [KEEP ms] [META text]"

// workIs makes the masters answer every DWORK with an attempt of one second.
func (c *workConversation) workIs(validity time.Duration) *stillClock {
	clock := &stillClock{now: time.Hour}
	c.works.work = acquired(c.t, validity, clock)
	return clock
}

func TestDWORK_LeavesItsWaitWhenTheClientGoes(t *testing.T) {
	c := newConversation(t)
	works := &fakeWorks{}
	c.serve(commands.Deps{Works: works})
	c.start("DWORK", "k", "1000", "MAX", "3", "WAIT", "500")
	c.client.OnClose.Run()
	if works.left != 1 {
		t.Errorf("%d waits were left, want 1", works.left)
	}
}

func TestDWORK_AnswersWhatTheWorkerNeeds(t *testing.T) {
	c := newWorkConversation(t)
	c.workIs(988*time.Millisecond + 999*time.Microsecond)
	c.transcript(`
		> DWORK report 1000 MAX 3
		< [+acquired :2 "work-token" :988 :41 :0]
	`)
	c.works.work.Last = true
	c.transcript(`
		> dwork report 1000 max 2
		< [+acquired :2 "work-token" :988 :41 :1]
	`)
}

func TestDWORK_AnswersWhenThereIsNothingToDo(t *testing.T) {
	c := newWorkConversation(t)
	for want, work := range map[string]redlock.Work{
		"[+running :2 :412]": {State: redlock.WorkRunning, Attempt: 2, Retry: 411*time.Millisecond + time.Microsecond},
		"[+running :1 :1]":   {State: redlock.WorkRunning, Attempt: 1, Retry: time.Millisecond},
		"[+done :3]":         {State: redlock.WorkDone, Attempt: 3},
		"[+exhausted :5]":    {State: redlock.WorkExhausted, Attempt: 5},
	} {
		c.works.work = work
		if got := c.say("DWORK report 1000 MAX 5"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(c.works.givenBack) > 0 {
		t.Errorf("given back %q", c.works.givenBack)
	}
}

func TestDWORK_SendsWhatWasRequested(t *testing.T) {
	c := newWorkConversation(t)
	c.works.work = redlock.Work{State: redlock.WorkDone, Attempt: 1}
	c.transcript(`
		> SELECT 3
		< +OK
		> DWORK "a\r\n\x00b" 10 meta "build 7" keep 1 WAIT 120000 MaX 1000000
		< [+done :1]
		> DWORK b 60000 MAX 1 WAIT 0 KEEP 300000 META ""
		< [+done :1]
		> DWORK c 1000 MAX 2 WAIT 1
		< [+done :1]
		> DWORK d 1000 MAX 2
		< [+done :1]
	`)
	want := []redlock.WorkRequest{
		{DB: 3, Key: "a\r\n\x00b", Timeout: 10 * time.Millisecond, Max: 1_000_000, Wait: 2 * time.Minute, Keep: time.Millisecond, Meta: "build 7"},
		{DB: 3, Key: "b", Timeout: time.Minute, Max: 1, Wait: 2 * time.Minute, Keep: 5 * time.Minute},
		{DB: 3, Key: "c", Timeout: time.Second, Max: 2, Wait: time.Millisecond},
		{DB: 3, Key: "d", Timeout: time.Second, Max: 2},
	}
	if !slices.Equal(c.works.asked, want) {
		t.Errorf("got %+v\nwant %+v", c.works.asked, want)
	}
}

func TestDWORK_ReportsACallersMistakes(t *testing.T) {
	c := newWorkConversation(t)
	const notANumber = " is not an integer or out of range, allowed are "
	c.refuses(workSyntax, [][2]string{
		{"DWORK report 1000 MAX", "wrong number of arguments for 'dwork' command"},
		{`DWORK "" 1000 MAX 1`, "invalid name: 0 bytes, allowed are 1 to 512"},
		{"DWORK redlockd:work:a 1000 MAX 1", "invalid name 'redlockd:work:a': names beginning with 'redlockd:' are reserved"},
		{"DWORK report 9 MAX 1", "timeout '9'" + notANumber + "10 to 60000 ms (--max-ttl)"},
		{"DWORK report 60001 MAX 1", "timeout '60001'" + notANumber + "10 to 60000 ms (--max-ttl)"},
		{"DWORK report 1e3 MAX 1", "timeout '1e3'" + notANumber + "10 to 60000 ms (--max-ttl)"},
		{"DWORK report 1000 MAX 0", "MAX '0'" + notANumber + "1 to 1000000"},
		{"DWORK report 1000 MAX 1000001", "MAX '1000001'" + notANumber + "1 to 1000000"},
		{"DWORK report 1000 MAX -1", "MAX '-1'" + notANumber + "1 to 1000000"},
		{"DWORK report 1000 MAX 1 max 2", "option MAX is given twice"},
		{"DWORK report 1000 WAIT 5", "option MAX is missing: give the number of attempts, 1 to 1000000"},
		{"DWORK report 1000 MAX 1 WAIT -1", "WAIT '-1'" + notANumber + "0 to 120000 ms (--max-wait)"},
		{"DWORK report 1000 MAX 1 WAIT 120001", "WAIT '120001'" + notANumber + "0 to 120000 ms (--max-wait)"},
		{"DWORK report 1000 MAX 1 WAIT", "option WAIT needs a value"},
		{"DWORK report 1000 MAX 1 KEEP 0", "KEEP '0'" + notANumber + "1 to 300000 ms (--max-keep)"},
		{"DWORK report 1000 MAX 1 KEEP 300001", "KEEP '300001'" + notANumber + "1 to 300000 ms (--max-keep)"},
		{"DWORK report 1000 MAX 1 META " + x(513), "invalid META: 513 bytes, allowed are 0 to 512"},
		{"DWORK report 1000 MAX 1 TOKEN 12345678", "unknown option 'TOKEN'"},
	})
	if len(c.works.asked) > 0 {
		t.Errorf("a mistaken request reached the masters: %+v", c.works.asked)
	}
}

func TestDWORK_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	c.mirrors("DWORK report 1000 MAX 3", func(err error) { c.works.err = err })
	if len(c.works.givenBack) > 0 {
		t.Errorf("an attempt that was not given was given back here: %q", c.works.givenBack)
	}
}

func TestDWORK_ComputesTheValidityWhenTheReplyIsWritten(t *testing.T) {
	c := newWorkConversation(t)
	clock := c.workIs(500 * time.Millisecond)
	sink := c.start("DWORK", "report", "1000", "MAX", "3")
	clock.now += 200 * time.Millisecond
	if got := show(sink.read(t)); got != `[+acquired :2 "work-token" :300 :41 :0]` {
		t.Error(got)
	}
}

func TestDWORK_GivesBackAnAttemptWithoutTimeLeft(t *testing.T) {
	for _, waited := range []time.Duration{500*time.Millisecond - time.Microsecond, 500 * time.Millisecond, time.Second} {
		c := newWorkConversation(t)
		clock := c.workIs(500 * time.Millisecond)
		sink := c.start("DWORK", "report", "1000", "MAX", "3")
		clock.now += waited
		got := show(sink.read(t))
		if !strings.HasPrefix(got, "-EXPIRED the reply could be written only after ") || !strings.Contains(got, "; the attempt is given back, ") {
			t.Error(got)
		}
		sink.late.Undelivered()
		if !slices.Equal(c.works.givenBack, []redlock.Token{"work-token"}) {
			t.Errorf("given back %q, want the token once", c.works.givenBack)
		}
	}
}

func TestDWORK_GivesBackAnAttemptWhoseWorkerHasGone(t *testing.T) {
	for name, written := range map[string]bool{"before the reply was computed": false, "after it was computed": true} {
		c := newWorkConversation(t)
		c.workIs(time.Second)
		sink := c.start("DWORK", "report", "1000", "MAX", "3")
		if written {
			sink.late.Reply()
		}
		sink.late.Undelivered()
		if !slices.Equal(c.works.givenBack, []redlock.Token{"work-token"}) {
			t.Errorf("%s: given back %q", name, c.works.givenBack)
		}
	}
}

func TestDWORK_IsABarrierWhenItMayWait(t *testing.T) {
	c := newWorkConversation(t)
	for line, want := range map[string]bool{
		"DWORK report 1000 MAX 3":                   false,
		"DWORK report 1000 MAX 3 WAIT 0":            true,
		"dwork report 1000 wait 5 MAX 3":            true,
		"DWORK report 1000 META x KEEP 5 WAIT 5":    true,
		"DWORK report 1000 MAX 3 META WAIT":         false,
		"DWORK WAIT 1000 MAX 3":                     false,
		"DWORK report 1000 META WAIT MAX 3 WAIT 10": true,
		"DWORK":                       false,
		"DWORKDONE report work-token": false,
	} {
		if got := c.table.Plan(strings.Fields(line)).Barrier; got != want {
			t.Errorf("%s: barrier %t", line, got)
		}
	}
}
