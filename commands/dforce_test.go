package commands_test

import (
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

func TestDFORCE_AnswersWhetherTheLockWasHeldAndNamesTheCaller(t *testing.T) {
	c := newLookConversation(t)
	c.client.Name = "console"
	c.transcript(`
		> DFORCE k
		< :0
	`)
	c.looks.forced = true
	c.transcript(`
		> DFORCE k
		< :1
	`)
	want := redlock.ForceRequest{DB: 3, Key: "k", By: redlock.Requester{ID: 7, Addr: "10.0.0.9:5555", Name: "console", User: "default"}}
	if c.looks.force != want {
		t.Errorf("%+v, want %+v", c.looks.force, want)
	}
	c.refuses("DFORCE key", [][2]string{
		{"DFORCE", "wrong number of arguments for 'dforce' command"},
		{"DFORCE redlockd:seal", "invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved"},
	})
	c.mirrors("DFORCE k", func(err error) { c.looks.err = err })
	c.looks.err = redlock.ErrWrongType
	if got := c.say("DFORCE k"); !strings.HasPrefix(got, "-WRONGTYPE ") {
		t.Error(got)
	}
}

// A category of its own: who may use locks may not take others' away.
func TestDFORCE_NeedsItsOwnCategoryAndTheKey(t *testing.T) {
	c := newLookConversation(t)
	c.asUser("a:*")
	if got := c.say("DFORCE b"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Errorf("another's key: %s", got)
	}
	who := access.Everything("ops", "pw")
	who.Commands = []string{access.CategoryLock, access.CategoryRead, access.CategoryID, access.CategoryWork, access.CategoryAdmin}
	users, err := access.NewUsers([]access.User{who})
	if err != nil {
		t.Fatal(err)
	}
	c.serve(commands.Deps{Inspect: c.looks, Users: users})
	if got := c.say("DFORCE a:1"); got != "-NOPERM this user has no permissions to run the 'dforce' command" {
		t.Error(got)
	}
	if c.looks.force.Key != "" {
		t.Errorf("%q was forced", c.looks.force.Key)
	}
}
