package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

func TestWorkEnds_AnswerWhetherItIsSo(t *testing.T) {
	c := newWorkConversation(t)
	c.works.so = true
	c.transcript(`
		> SELECT 3
		< +OK
		> DWORKDONE report work-token
		< :1
		> DWORKFAIL report work-token
		< :1
	`)
	c.works.so = false
	c.transcript(`
		> DWORKDONE report work-token
		< :0
		> DWORKFAIL report work-token
		< :0
	`)
	if want := []string{"done", "fail", "done", "fail"}; !slices.Equal(c.works.ended, want) {
		t.Errorf("asked for %q, want %q", c.works.ended, want)
	}
	for _, r := range c.works.requests {
		if want := (redlock.WorkEndRequest{DB: 3, Key: "report", Token: "work-token"}); r != want {
			t.Errorf("asked for %+v", r)
		}
	}
}

func TestDWORKEXTEND_AnswersWhatIsLeftWhenItIsWritten(t *testing.T) {
	c := newWorkConversation(t)
	clock := c.workIs(19_796 * time.Millisecond)
	sink := c.start("DWORKEXTEND", "report", "work-token", "20000")
	clock.now += time.Second
	if got := show(sink.read(t)); got != ":18796" {
		t.Error(got)
	}
	want := []redlock.WorkEndRequest{{Key: "report", Token: "work-token", Timeout: 20 * time.Second}}
	if !slices.Equal(c.works.requests, want) || c.works.ended[0] != "extend" {
		t.Errorf("got %q %+v", c.works.ended, c.works.requests)
	}
}

func TestDWORKEXTEND_IsNilForAnAttemptThatWasTakenOver(t *testing.T) {
	c := newWorkConversation(t)
	c.works.err = redlock.ErrNotHeld
	c.transcript(`
		> DWORKEXTEND report work-token 20000
		< nil
	`)
}

func TestDWORKEXTEND_NeverGivesAnAttemptBack(t *testing.T) {
	c := newWorkConversation(t)
	clock := c.workIs(time.Second)
	sink := c.start("DWORKEXTEND", "report", "work-token", "20000")
	clock.now += time.Second
	want := "-EXPIRED the reply could be written only after 1000 ms, which leaves nothing of a ttl of 1000 ms; the attempt may be taken over, use a longer ttl"
	if got := show(sink.read(t)); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	sink.late.Undelivered()
	if len(c.works.givenBack) > 0 {
		t.Errorf("given back %q", c.works.givenBack)
	}
}

func TestWorkEnds_ReportACallersMistakes(t *testing.T) {
	c := newWorkConversation(t)
	for name, syntax := range map[string]string{"DWORKDONE": "DWORKDONE key token [RESULT result]", "DWORKFAIL": "DWORKFAIL key token", "DWORKEXTEND": "DWORKEXTEND key token timeout"} {
		timeout := ""
		if name == "DWORKEXTEND" {
			timeout = " 1000"
		}
		c.refuses(syntax, [][2]string{
			{name + " report", "wrong number of arguments for '" + strings.ToLower(name) + "' command"},
			{name + ` "" work-token` + timeout, "invalid name: 0 bytes, allowed are 1 to 512"},
			{name + " report secret!" + timeout, "invalid token: 7 bytes, allowed are 8 to 512"},
			{name + " report " + x(513) + timeout, "invalid token: 513 bytes, allowed are 8 to 512"},
		})
	}
	c.refuses("DWORKEXTEND key token timeout", [][2]string{
		{"DWORKEXTEND report work-token 9", "timeout '9' is not an integer or out of range, allowed are 10 to 60000 ms (--max-ttl)"},
		{"DWORKEXTEND report work-token 60001", "timeout '60001' is not an integer or out of range, allowed are 10 to 60000 ms (--max-ttl)"},
	})
	if len(c.works.ended) > 0 {
		t.Errorf("a mistaken request reached the masters: %q", c.works.ended)
	}
}

func TestWorkEnds_MirrorTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	for _, line := range []string{"DWORKDONE report work-token", "DWORKFAIL report work-token", "DWORKEXTEND report work-token 1000"} {
		c.mirrors(line, func(err error) { c.works.err = err })
	}
}

func TestDWORKDONE_LeavesAResult(t *testing.T) {
	c := newWorkConversation(t)
	c.works.so = true
	c.transcript(`
		> DWORKDONE report work-token result "s3://b/k\x00"
		< :1
		> DWORKDONE report work-token RESULT ""
		< :1
	`)
	for i, want := range []string{"s3://b/k\x00", ""} {
		if got := c.works.requests[i].Result; got == nil || *got != want {
			t.Errorf("request %d leaves %v, want %q", i, got, want)
		}
	}
	result := "s3://b/k"
	c.works.work = redlock.Work{State: redlock.WorkDone, Attempt: 2, Result: &result}
	c.works.view = redlock.WorkView{State: redlock.WorkDone, Result: &result}
	c.transcript(`
		> DWORK report 20000 MAX 3
		< [+done :2 "s3://b/k"]
	`)
	if got := c.say("DWORKINFO report"); !strings.Contains(got, `"result" "s3://b/k"`) {
		t.Error(got)
	}
	c.refuses("DWORKDONE key token [RESULT result]", [][2]string{
		{"DWORKDONE report work-token RESULT", "option RESULT needs a value"},
		{"DWORKDONE report work-token KEEP 5", "unknown option 'KEEP'"},
		{"DWORKDONE report work-token RESULT " + x(1025), "invalid RESULT: 1025 bytes, allowed are 0 to 1024; keep more elsewhere, and its place here"},
	})
}
