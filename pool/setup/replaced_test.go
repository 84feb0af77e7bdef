package setup

// replaced_test.go: the seal and its register stay where the daemon's user may not
// write the one that replaces it.

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// theSeal is what stands at the seal of a database of a master, with its register.
func theSeal(t *testing.T, s *faulty.Server, db int) string {
	t.Helper()
	reply, err := s.Do("EVAL", "redis.call('SELECT', ARGV[1]) return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", 1, "redlockd:seal", db)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(reply)
}

// forbidZADD has the options use a user that may do all but ZADD on the first master.
func forbidZADD(t *testing.T, servers []*faulty.Server, o *pool.Options) {
	t.Helper()
	for i, s := range servers {
		rules := []any{"ACL", "SETUSER", "redlockd", "on", ">pw", "allkeys", "allchannels", "+@all"}
		if i == 0 {
			rules = append(rules, "-zadd")
		}
		if _, err := s.Do(rules...); err != nil {
			t.Fatal(err)
		}
		o.Masters[i].Username, o.Masters[i].Password = "redlockd", "pw"
	}
}

func TestAdmitScript_KeepsTheSealThatItMayNotReplace(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	forbidZADD(t, servers, &o)
	before := theSeal(t, servers[0], 0)
	if err := Bootstrap(t.Context(), o, BootstrapTerms{Force: true}, io.Discard); err == nil || !strings.Contains(err.Error(), "master a") {
		t.Errorf("%v, want an error that names the master", err)
	}
	if after := theSeal(t, servers[0], 0); after != before {
		t.Errorf("the seal is %s, was %s", after, before)
	}
}

// A seal in another database, which SWAPDB has put there, is invalidated by the same script.
func TestAdmitScript_KeepsTheSwappedSealThatItMayNotReplace(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	forbidZADD(t, servers, &o)
	before := theSeal(t, servers[0], 0)
	if _, err := servers[0].Do("SWAPDB", 0, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := servers[0].Do("DEL", "redlockd:seal"); err != nil {
		t.Fatal(err)
	}
	if err := Bootstrap(t.Context(), o, BootstrapTerms{Force: true}, io.Discard); err == nil || !strings.Contains(err.Error(), "master a") {
		t.Errorf("%v, want an error that names the master", err)
	}
	if after := theSeal(t, servers[0], 1); after != before {
		t.Errorf("the seal that was swapped away is %s, was %s", after, before)
	}
}

func TestReconfigureScript_KeepsTheSealThatItMayNotReplace(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	forbidZADD(t, servers, &o)
	before := theSeal(t, servers[0], 0)
	o.MaxTTL *= 2
	if out, err := reconfigure(t, o, false); err == nil {
		t.Errorf("reconfigured a master that refuses ZADD: %s", out)
	}
	if after := theSeal(t, servers[0], 0); after != before {
		t.Errorf("the seal is %s, was %s", after, before)
	}
	if _, err := servers[0].Do("ACL", "SETUSER", "redlockd", "+zadd"); err != nil {
		t.Fatal(err)
	}
	if out, err := reconfigure(t, o, false); err != nil {
		t.Errorf("said again when it may: %v\n%s", err, out)
	}
}
