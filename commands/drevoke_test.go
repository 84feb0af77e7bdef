package commands_test

import (
	"slices"
	"testing"
	"time"

	"redlockd/commands"
)

func TestDREVOKE_AnswersHowManyConnectionsAreNotified(t *testing.T) {
	c := newLookConversation(t)
	c.transcript(`
		> DREVOKE invoices
		< :1
		> SELECT 5
		< +OK
		> DREVOKE invoices "deploy\r\n7"
		< :2
	`)
	if want := []string{"3 invoices ", "5 invoices deploy\r\n7"}; !slices.Equal(c.looks.revoked, want) {
		t.Errorf("got %q, want %q", c.looks.revoked, want)
	}
	c.refuses("DREVOKE key [text]", [][2]string{
		{"DREVOKE", "wrong number of arguments for 'drevoke' command"},
		{"DREVOKE a text more", "wrong number of arguments for 'drevoke' command"},
		{"DREVOKE a " + x(513), "invalid text: 513 bytes, allowed are 0 to 512"},
		{"DREVOKE redlockd:seal", "invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved"},
	})
}

func TestDREVOKE_IsPushedToTheConnectionThatHolds(t *testing.T) {
	c := newConversation(t)
	c.serve(c.deps)
	c.grants(time.Second)
	c.say("DLOCK a 1000 HOLD")
	terms := c.locks.locked[0].Hold
	terms.OnWanted("a", "without a client that can be told")
	var pushed []string
	c.client.Push = func(message commands.Reply, plain bool) {
		if plain {
			t.Error("clients on RESP2 get it")
		}
		pushed = append(pushed, show(message))
	}
	terms.OnWanted("a", "deploy")
	if want := []string{`>"dlock-wanted" "a" "deploy"`}; !slices.Equal(pushed, want) {
		t.Errorf("pushed %q, want %q", pushed, want)
	}
}
