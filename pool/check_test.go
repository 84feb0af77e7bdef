package pool

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

var onDisk = []string{"--appendonly", "yes", "--appendfsync", "always"}

func check(t *testing.T, o Options) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Check(t.Context(), o, &out)
	return out.String(), err
}

// wantReason expects a refusal that says so.
func wantReason(t *testing.T, o Options, says string) {
	t.Helper()
	out, err := check(t, o)
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, says) {
		t.Errorf("%v\n%swant %q", err, out, says)
	}
}

func TestCheck_FindsFitMastersFit(t *testing.T) {
	servers := faulty.StartGroup(t, 3, onDisk...)
	o := optionsOf(servers...)
	out, err := check(t, o)
	if err != nil || strings.Count(out, "yes") != 6 || strings.Count(out, " new ") != 3 || strings.Contains(out, "warning") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, s := range servers {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("the check left %q", keys)
		}
	}
	seen(t, o, 0, "quarantined")
	if out, err := check(t, o); err != nil || !strings.Contains(out, "votes") {
		t.Errorf("%v\n%s", err, out)
	}
	o.MaxTTL = time.Minute
	wantReason(t, o, "serves daemons with other settings: max-ttl is 60000 here and 200 there")
}

func TestCheck_WarnsOfMastersThatForget(t *testing.T) {
	out, err := check(t, optionsOf(faulty.StartGroup(t, 3)...))
	if err != nil || strings.Count(out, "warning: appendonly no") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck_SaysWhatIsWrongWithAMaster(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	a, b, c := servers[0], servers[1], servers[2]
	do := func(args ...any) {
		t.Helper()
		if _, err := c.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	o := optionsOf(servers...)
	do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	wantReason(t, o, "c: maxmemory-policy is allkeys-lru")
	do("CONFIG", "SET", "maxmemory-policy", "noeviction")

	twice := optionsOf(a, b, b)
	wantReason(t, twice, "c: is the same server as master b")
	many := o
	many.Databases = 17
	wantReason(t, many, "has no database 16")

	host, port, _ := strings.Cut(a.Addr(), ":")
	do("REPLICAOF", host, port)
	wantReason(t, o, "c: is a slave")
	do("REPLICAOF", "NO", "ONE")
	wantReason(t, o, "c: is a promoted replica")
	c.Kill()
	wantReason(t, o, "c: cannot be reached")
}

func TestCheck_FindsAClockThatIsWrong(t *testing.T) {
	servers := faulty.WithClock().StartGroup(t, 3)
	servers[1].Step(2 * time.Second)
	out, err := check(t, optionsOf(servers...))
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, "b: its clock is +") || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The user of the file may do everything; one right less is missed.
func TestCheck_NamesTheCommandsThatTheUserMayNotSay(t *testing.T) {
	text, err := os.ReadFile("../configs/master-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	servers := faulty.StartGroup(t, 3)
	denied := []string{"hset", "script|load", "evalsha", "pexpireat"}
	if _, err := servers[0].Do("PEXPIRETIME", "none"); err != nil { // Redis 6.2: as README says, and there subcommands cannot be taken away
		words = slices.DeleteFunc(words, func(word string) bool { return word == "+pexpiretime" })
		denied = slices.DeleteFunc(denied, func(name string) bool { return strings.Contains(name, "|") })
	}
	for _, s := range servers {
		args := []any{"ACL", "SETUSER"}
		for _, word := range words[1:] {
			args = append(args, word)
		}
		if _, err := s.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	o := optionsOf(servers...)
	for i := range o.Masters {
		o.Masters[i].Username, o.Masters[i].Password = "redlockd", "change-me"
	}
	if out, err := check(t, o); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range denied {
		if _, err := servers[1].Do("ACL", "SETUSER", "redlockd", "-"+name); err != nil {
			t.Fatal(err)
		}
		wantReason(t, o, "b: its user may not "+name)
		if _, err := servers[1].Do("ACL", "SETUSER", "redlockd", "+"+name); err != nil {
			t.Fatal(err)
		}
	}
}
