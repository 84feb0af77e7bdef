package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

func TestDWORKINFO_ShowsWhatAQuorumHasAndNeverTheToken(t *testing.T) {
	c := newWorkConversation(t)
	c.works.view = redlock.WorkView{
		State: redlock.WorkRunning, Attempt: 2, Max: 3, Holder: "work-token", Left: 812 * time.Millisecond,
		Keep: 2 * time.Second, Forgot: 2812 * time.Millisecond, Meta: "build 7", Votes: 5,
	}
	// The first eight digits of: printf work-token | sha256sum
	want := `{"state" +running "attempt" :2 "max" :3 "holder" "488dc3c9" "left-ms" :812 "keep-ms" :2000 "forgotten-in-ms" :2812 "meta" "build 7" "result" nil "votes" :5}`
	got := c.say("DWORKINFO report")
	if got != want || strings.Contains(got, "work-token") {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if !slices.Equal(c.works.read, []redlock.Key{"report"}) {
		t.Errorf("read %q", c.works.read)
	}
}

func TestDWORKINFO_IsNilForUnknownWork(t *testing.T) {
	newWorkConversation(t).transcript(`
		> DWORKINFO report
		< nil
	`)
}

func TestDWORKINFO_ReportsACallersMistakes(t *testing.T) {
	newWorkConversation(t).refuses("DWORKINFO key", [][2]string{
		{"DWORKINFO", "wrong number of arguments for 'dworkinfo' command"},
		{"DWORKINFO " + x(513), "invalid name: 513 bytes, allowed are 1 to 512"},
	})
}

func TestDWORKINFO_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	c.mirrors("DWORKINFO report", func(err error) { c.works.err = err })
}
