package commands_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

func TestDWAITERS_ShowsWaitersSinceWhenAndForHowLong(t *testing.T) {
	c := newLookConversation(t)
	c.transcript(`
		> DWAITERS
		< []
	`)
	c.looks.waiting = []redlock.Waiting{
		{Keys: []redlock.Key{"k", "z"}, Mode: redlock.Shared, Fair: true, Place: 2, Since: 3 * time.Second, Left: 7 * time.Second, Requester: redlock.Requester{ID: 8, Addr: "10.0.0.8:1", Name: "n", User: "u"}},
		{Keys: []redlock.Key{"other"}, Place: 1},
	}
	before := time.Now().Add(-3 * time.Second).UnixMilli()
	got := c.say("DWAITERS z")
	_, rest, _ := strings.Cut(got, `"since" :`)
	number, _, _ := strings.Cut(rest, " ")
	since, err := strconv.ParseInt(number, 10, 64)
	if err != nil || since < before || since > time.Now().Add(-3*time.Second).UnixMilli() {
		t.Errorf("waits since %q, want about %d", number, before)
	}
	want := fmt.Sprintf(`[{"keys" ["k" "z"] "mode" +shared "fair" :1 "place" :2 "client" :8 "addr" "10.0.0.8:1" "name" "n" "user" "u" "since" :%s "waited-ms" :3000 "left-ms" :7000}]`, number)
	if got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if got := c.say("DWAITERS"); strings.Count(got, `"waited-ms"`) != 2 {
		t.Errorf("of all keys: %s", got)
	}
}

func TestDWAITERS_ShowsUsersTheirOwnKeysOnly(t *testing.T) {
	c := newLookConversation(t)
	c.looks.waiting = []redlock.Waiting{{Keys: []redlock.Key{"a:1", "b:1"}}, {Keys: []redlock.Key{"b:2"}}}
	c.asUser("a:*")
	for _, line := range []string{"DWAITERS", "DWAITERS a:1"} {
		if got := c.say(line); !strings.HasPrefix(got, `[{"keys" ["a:1"] "mode"`) || strings.Contains(got, "b:") {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := c.say("DWAITERS b:2"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Errorf("another's key: %s", got)
	}
}

func TestDWAITERS_OfAllKeysLeavesNoWaiterOutSilently(t *testing.T) {
	c := newLookConversation(t)
	c.looks.all = maxShownWaiters + 1
	c.transcript(`
		> DWAITERS
		< -ERR 1001 requests wait and one listing has room for 1000; name a key: DWAITERS key
		> DWAITERS k
		< []
	`)
	if c.looks.most != maxShownWaiters {
		t.Errorf("asked for %d", c.looks.most)
	}
}

// A waiter shows its client: the connection as it was at the request.
func TestDLOCK_PassesTheIdentityOfItsClient(t *testing.T) {
	c := newConversation(t)
	c.client.Name = "worker"
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrHeld }
	c.say("DLOCK k 1000")
	c.client.User = "ops"
	c.say("DMLOCK 1000 2 a b META text")
	want := []redlock.Requester{{ID: 7, Addr: "10.0.0.9:5555", Name: "worker", User: "default"}, {ID: 7, Addr: "10.0.0.9:5555", Name: "worker", User: "ops", Meta: "text"}}
	if !slices.Equal(c.locks.requesters, want) {
		t.Errorf("asked for %+v", c.locks.requesters)
	}
}
