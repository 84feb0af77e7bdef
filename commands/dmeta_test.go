package commands_test

import (
	"slices"
	"strings"
	"testing"

	"redlockd/redlock"
)

func TestDMETA_AnswersWhetherTheTokenHoldsTheLock(t *testing.T) {
	c := newLookConversation(t)
	c.looks.forced = true
	c.transcript(`
		> DMETA k 12345678 "node 7"
		< :1
	`)
	c.looks.forced = false
	c.transcript(`
		> DMETA k 12345678 ""
		< :0
		> DMETA k 1234567 text
		< -ERR invalid token: 7 bytes, allowed are 8 to 512; syntax: DMETA key token text
		> DMETA redlockd:k 12345678 text
		< -ERR invalid lock name 'redlockd:k': names beginning with 'redlockd:' are reserved; syntax: DMETA key token text
	`)
	if got := c.say("DMETA k 12345678 " + strings.Repeat("x", 513)); !strings.Contains(got, "invalid META: 513 bytes") {
		t.Error(got)
	}
	c.looks.err = &redlock.NoQuorum{Needed: 3, Total: 5}
	if got := c.say("DMETA k 12345678 text"); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Error(got)
	}
	if want := []string{"3 k 12345678 node 7", "3 k 12345678 ", "3 k 12345678 text"}; !slices.Equal(c.looks.described, want) {
		t.Errorf("described %q, want %q", c.looks.described, want)
	}
}
