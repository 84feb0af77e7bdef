package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// The script is known by its SHA1. The tests do without its text.
const nextIDCall = "EVALSHA 556429c2d8baca516a475ebb22d380cbccae7313 1 "

// counting gives ids above the last one.
func counting(t *testing.T, last int64) (*conversation, *countingIDs) {
	t.Helper()
	c := newConversation(t)
	ids := &countingIDs{fakeIDs: &fakeIDs{}, last: last}
	c.serve(commands.Deps{Locks: c.locks, IDs: ids, RedisCompat: &oneRedis{fakeLocks: c.locks, views: map[redlock.Key]redlock.View{}}, Databases: 16})
	return c, ids
}

type countingIDs struct {
	*fakeIDs
	last int64
}

func (c *countingIDs) NextID(b *redlock.Batch, r redlock.IDRequest, done redlock.IDDone) {
	c.last++
	c.first = c.last
	c.fakeIDs.NextID(b, r, done)
}

// GET reserves an id, and the script gives each of them once.
func TestNextID_GivesEachIDOnce(t *testing.T) {
	c, ids := counting(t, 0)
	c.transcript(`
		> GET nextid:orders
		< nil
		> ` + nextIDCall + `nextid:orders 1
		< :1
		> ` + nextIDCall + `nextid:orders 1
		< nil
		> GET nextid:orders
		< "1"
		> GET nextid:orders
		< "2"
		> ` + nextIDCall + `nextid:orders 3
		< :3
		> ` + nextIDCall + `nextid:orders 2
		< :2
		> ` + nextIDCall + `nextid:orders 2
		< nil
		> ` + nextIDCall + `nextid:orders 9
		< nil
		> GET nextid:others
		< nil
		> DEL nextid:orders
		< -ERR the ids of counter 'nextid:orders' only grow; an operator deletes it with DIDS DEL
	`)
	if ids.last != 3 {
		t.Errorf("%d ids taken, want 3", ids.last)
	}
	ids.err = &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5}
	if got := c.say("GET nextid:orders"); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Error(got)
	}
}

// A daemon that has just started does not know which names are counters. One try is lost.
func TestNextID_GoesOnWhereTheCounterIs(t *testing.T) {
	c, _ := counting(t, 57)
	c.transcript(`
		> GET nextid:orders
		< nil
		> ` + nextIDCall + `nextid:orders 1
		< nil
		> GET nextid:orders
		< "58"
		> ` + nextIDCall + `nextid:orders 59
		< :59
	`)
}

func TestNextID_IsServedForItsOwnNamesOnly(t *testing.T) {
	c, ids := counting(t, 0)
	for _, words := range []string{nextIDCall + "orders 1", nextIDCall + "nextid:orders 1 2", "EVALSHA_RO" + strings.TrimPrefix(nextIDCall, "EVALSHA") + "nextid:orders 1"} {
		if got := c.say(words); got != "-NOSCRIPT No matching script. Please use EVAL." {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := c.say(nextIDCall + "nextid:orders one"); got != "-ERR the id 'one' is no integer" {
		t.Error(got)
	}
	if ids.last != 0 {
		t.Errorf("%d ids taken", ids.last)
	}
}

// What is remembered has a bound. The client of what was dropped tries again.
func TestNextID_RemembersABoundedNumber(t *testing.T) {
	c, _ := counting(t, 0)
	c.say(nextIDCall + "nextid:orders 1")
	for range 65 {
		c.say("GET nextid:orders")
	}
	if got := c.say(nextIDCall + "nextid:orders 2"); got != "nil" {
		t.Errorf("the 65th reservation drops the first: %s", got)
	}
	if got := c.say(nextIDCall + "nextid:orders 3"); got != ":3" {
		t.Error(got)
	}
	for i := range 1024 {
		c.say(fmt.Sprint(nextIDCall, "nextid:", i, " 1"))
	}
	if got := c.say("GET nextid:orders"); got != "nil" {
		t.Errorf("1024 more names drop the first: %s", got)
	}
}

func TestNextID_NeedsTheCategoryOfIDs(t *testing.T) {
	user := access.Everything("low", "pw")
	user.Commands = []string{access.CategoryLock, access.CategoryRead}
	c, _ := guarded(t, user, access.Everything("operator", "pw"))
	c.deps.RedisCompat = &oneRedis{fakeLocks: c.locks, views: map[redlock.Key]redlock.View{}}
	c.serve(c.deps)
	c.transcript(`
		> AUTH low pw
		< +OK
		> ` + nextIDCall + `nextid:orders 1
		< -NOPERM this user has no permissions to take ids (category id)
		> GET nextid:orders
		< nil
	`)
}
