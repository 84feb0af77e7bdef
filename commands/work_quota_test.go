package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// employed is a user who may hold two things, signed in.
func employed(t *testing.T) (*conversation, *fakeWorks, *stillClock, *time.Time) {
	t.Helper()
	user := low()
	user.Held, user.Commands = 2, access.Categories()
	c, users := guarded(t, user)
	now := time.Now()
	users.Now = func() time.Time { return now }
	works, clock := &fakeWorks{so: true}, &stillClock{now: time.Hour}
	works.work = acquired(t, time.Second, clock)
	c.serve(commands.Deps{Locks: c.locks, Works: works, Users: users})
	c.grants(time.Minute)
	c.say("AUTH low new")
	return c, works, clock, &now
}

const twoAreHeld = "-TRYLATER user 'low' may hold 2 locks at once (held in the users file); nothing was done"

func (c *conversation) outcome(line string) string {
	c.t.Helper()
	reply := c.say(line)
	if strings.HasPrefix(reply, "[") {
		return "granted"
	}
	return reply
}

// The token of this work says nothing of a KEEP: see below for those that do.
func TestQuota_CountsAttemptsAtWorkAndLocksTogether(t *testing.T) {
	for _, end := range []string{"DWORKDONE a:1 work-token", "DWORKFAIL a:1 work-token"} {
		c, works, _, _ := employed(t)
		for _, step := range []struct{ line, want string }{
			{"DWORK a:1 1000 MAX 3", "granted"}, {"DLOCK a:1 1000", "granted"},
			{"DWORK a:2 1000 MAX 3", twoAreHeld}, {"DLOCK a:2 1000", twoAreHeld},
			{"DWORK a:1 1000 MAX 3", "granted"}, // the same work takes the same slot
			{"DWORKDONE a:1 not-the-token", ":1"}, {"DLOCK a:2 1000", twoAreHeld},
			{end, ":1"}, {"DLOCK a:2 1000", "granted"}, {"DWORK a:1 1000 MAX 3", twoAreHeld},
		} {
			if got := c.outcome(step.line); got != step.want {
				t.Errorf("%s: %s, want %s", step.line, got, step.want)
			}
		}
		if n := len(works.asked); n != 2 {
			t.Errorf("the masters received %d requests, want 2: none over the quota", n)
		}
	}
}

// A record stays on the masters until its KEEP ends: a user must not fill them one work after the other.
func TestQuota_ARecordOfWorkCountsUntilItsKEEPEnds(t *testing.T) {
	const token = "mBk3m0mNlKf5Mh2PAbFaUZ0yG5E.1.3.60000.1795214315982"
	for _, end := range []string{"DWORKDONE a:1 " + token, "DWORKFAIL a:1 " + token, "PING"} {
		c, works, _, now := employed(t)
		works.work.Token = token
		for _, line := range []string{"DWORK a:8 1000 MAX 3", "DWORK a:1 1000 MAX 3"} {
			if got := c.outcome(line); got != "granted" {
				t.Fatalf("%s: %s", line, got)
			}
		}
		c.say(end)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, twoAreHeld}, {59 * time.Second, twoAreHeld}, {3 * time.Second, "granted"}} {
			*now = now.Add(step.after)
			if got := c.outcome("DWORK a:2 1000 MAX 3"); got != step.want {
				t.Errorf("%s after %s: %s, want %s", step.after, end, got, step.want)
			}
		}
	}
}

// A token that no master knows as this attempt's frees the slot: the attempt was taken over.
func TestQuota_AnAttemptThatWasTakenOverTakesNoSlot(t *testing.T) {
	const token = "mBk3m0mNlKf5Mh2PAbFaUZ0yG5E.1.3.60000.1795214315982"
	c, works, _, _ := employed(t)
	works.work.Token = token
	c.say("DLOCK a:9 60000")
	c.say("DWORK a:1 1000 MAX 3")
	works.so = false
	c.say("DWORKDONE a:1 " + token)
	if got := c.outcome("DLOCK a:2 1000"); got != "granted" {
		t.Errorf("got %s", got)
	}
}

func TestQuota_AnAttemptThatWasNotGivenTakesNoSlot(t *testing.T) {
	c, works, _, _ := employed(t)
	for _, state := range []redlock.WorkState{redlock.WorkRunning, redlock.WorkDone, redlock.WorkExhausted} {
		works.work = redlock.Work{State: state, Attempt: 1}
		for range 3 {
			c.say("DWORK a:1 1000 MAX 3")
		}
	}
	works.err = redlock.ErrShutdown
	for range 3 {
		c.say("DWORK a:1 1000 MAX 3")
	}
	for _, line := range []string{"DLOCK a:1 1000", "DLOCK a:2 1000"} {
		if got := c.outcome(line); got != "granted" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestQuota_AnAttemptKeepsItsSlotAsLongAsItsLease(t *testing.T) {
	c, works, clock, now := employed(t)
	c.say("DLOCK a:9 60000")
	c.say("DWORK a:1 1000 MAX 3")
	works.work = acquired(t, time.Minute, clock)
	if got := c.say("DWORKEXTEND a:1 work-token 60000"); got != ":60000" {
		t.Fatalf("DWORKEXTEND: %s", got)
	}
	*now = now.Add(2 * time.Second)
	if got := c.outcome("DLOCK a:2 1000"); got != twoAreHeld {
		t.Errorf("while the extended lease runs: %s", got)
	}
	works.err = redlock.ErrShutdown
	c.say("DWORKDONE a:1 work-token")
	if got := c.outcome("DLOCK a:2 1000"); got != twoAreHeld {
		t.Errorf("after an end that is undecided: %s", got)
	}
	*now = now.Add(time.Minute)
	if got := c.outcome("DLOCK a:2 1000"); got != "granted" {
		t.Errorf("after the lease's end: %s", got)
	}
}

func TestQuota_AnAttemptGivenBackTakesNoSlot(t *testing.T) {
	c, works, _, _ := employed(t)
	c.say("DLOCK a:9 60000")
	c.start("DWORK", "a:1", "1000", "MAX", "3").late.Undelivered()
	if len(works.givenBack) != 1 {
		t.Fatalf("given back %q", works.givenBack)
	}
	if got := c.outcome("DLOCK a:2 1000"); got != "granted" {
		t.Errorf("got %s", got)
	}
}
