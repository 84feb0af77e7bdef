package commands_test

import (
	"testing"
	"time"

	"redlockd/redlock"
)

func TestDLOCKS_AnswersACursorAndTheLocksOfAStep(t *testing.T) {
	c := newLookConversation(t)
	c.looks.page = redlock.LockPage{Cursor: 1 << 62, Locks: []redlock.ListedLock{
		{Key: "a", View: redlock.LockView{State: redlock.LockHeld, Mode: redlock.Exclusive, Count: 1, Left: 1500 * time.Millisecond}},
		{Key: "b\n", View: redlock.LockView{State: redlock.LockHeld, Mode: redlock.Shared, Count: 3, Left: time.Second}},
		{Key: "c", View: redlock.LockView{State: redlock.LockUndecided, Mode: redlock.Permits, Count: 1, Left: time.Millisecond}},
	}}
	c.transcript(`
		> DLOCKS 0
		< ["4611686018427387904" ["a" "exclusive" :1 :1500 "b\n" "shared" :3 :1000 "c" "undecided" :1 :1]]
	`)
	if r := c.looks.listing; r.DB != 3 || r.Cursor != 0 || r.Count != 100 || r.Prefix != "" || !r.Wanted("anything") {
		t.Errorf("asked for %+v", r)
	}
	c.looks.page = redlock.LockPage{}
	c.transcript(`
		> dlocks 4611686018427387904 count 7 match inv*:?
		< ["0" []]
	`)
	r := c.looks.listing
	if r.Cursor != 1<<62 || r.Count != 7 || r.Prefix != "inv" || !r.Wanted("invoices:1") || r.Wanted("invoices:12") {
		t.Errorf("asked for %+v", r)
	}
}

func TestDLOCKS_ShowsUsersTheirOwnKeysOnly(t *testing.T) {
	c := newLookConversation(t)
	c.asUser("a:*")
	c.say("DLOCKS 0 MATCH *1")
	if r := c.looks.listing; !r.Wanted("a:1") || r.Wanted("b:1") || r.Wanted("a:2") {
		t.Error("a user of a:* sees other keys than a:1 of *1")
	}
}

func TestDLOCKS_ReportsMistakesAndMirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newLookConversation(t)
	c.refuses("DLOCKS cursor [MATCH pattern] [COUNT n]", [][2]string{
		{"DLOCKS", "wrong number of arguments for 'dlocks' command"},
		{"DLOCKS x", "cursor 'x' is not an integer or out of range, allowed are 0 to 9223372036854775807, as the last DLOCKS answered"},
		{"DLOCKS -1", "cursor '-1' is not an integer or out of range, allowed are 0 to 9223372036854775807, as the last DLOCKS answered"},
		{"DLOCKS 0 TYPE string", "unknown option 'TYPE'"},
		{"DLOCKS 0 COUNT", "option COUNT needs a value"},
		{"DLOCKS 0 COUNT 0", "COUNT '0' is not an integer or out of range, allowed are 1 to 1000"},
		{"DLOCKS 0 COUNT 1001", "COUNT '1001' is not an integer or out of range, allowed are 1 to 1000"},
		{"DLOCKS 0 MATCH [ab]", `MATCH '[ab]' holds [, which has no meaning of its own here: write \[ for the byte`},
		{"DLOCKS 0 MATCH a MATCH b", "option MATCH is given twice"},
	})
	c.mirrors("DLOCKS 0", func(err error) { c.looks.err = err })
	c.looks.err = redlock.ErrBadCursor
	c.transcript(`
		> DLOCKS 99
		< -ERR invalid cursor: it must be 0, or what the last DLOCKS of the same walk answered
	`)
}
