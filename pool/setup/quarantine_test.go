package setup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
)

func quarantine(t *testing.T, o pool.Options, master string, force ...bool) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Quarantine(t.Context(), o, master, len(force) > 0, &out)
	return out.String(), err
}

// within polls until something is true.
func within(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !true(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

func TestQuarantine_EndsTheIncarnationOfOneMasterInAllDatabases(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	for _, by := range []string{"b", servers[1].Addr()} {
		before := lives(t, servers)
		out, err := quarantine(t, o, by)
		if err != nil {
			t.Fatal(out, err)
		}
		dbs := "0"
		for db := 1; db < o.Databases; db++ {
			dbs += fmt.Sprintf(", %d", db)
		}
		if want := "master b: ended its incarnation in databases " + dbs + "\n"; by == "b" && !strings.HasPrefix(out, want) {
			t.Errorf("want %q first in\n%s", want, out)
		}
		if want := "does not vote for " + humanDuration(o.Age()); !strings.Contains(out, want) {
			t.Errorf("%q is not among\n%s", want, out)
		}
		seen(t, o, 1, "voting")
		after := lives(t, servers)
		if after[1].ID == before[1].ID || after[1].Base == 0 {
			t.Errorf("master b goes on in its incarnation: %+v, was %+v", after[1], before[1])
		}
		if after[0].Identity != before[0].Identity || after[2].Identity != before[2].Identity {
			t.Error("another master has another identity")
		}
	}
}

// A daemon admits a master in the databases that are in use alone.
func TestQuarantine_CountsMastersThatAreBlankInUnusedDatabases(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	servers[0].FlushAll()
	servers[2].FlushAll()
	seen(t, o, 0, "quarantined")
	if out, err := quarantine(t, o, "b"); err == nil || !strings.Contains(err.Error(), "0 of the 2 other masters vote") {
		t.Fatal(out, err)
	}
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g := p.Start()
	within(t, "all masters vote", func() bool {
		return !slices.ContainsFunc(g.Statuses(), func(s pool.Status) bool { return s.State != "voting" })
	})
	if out, err := quarantine(t, o, "b"); err != nil {
		t.Error(out, err)
	}
}

// Without force it takes no quorum away.
func TestQuarantine_LeavesAMasterAloneThatTheQuorumNeeds(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	before := lives(t, servers)
	servers[2].Kill()
	out, err := quarantine(t, o, "b")
	want := "quarantine: 1 of the 2 other masters vote, and a quorum is 2: without master b nothing is granted or extended for up to " + humanDuration(o.Age()) + "; nothing was changed. First bring back the others"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--force") || out != "" {
		t.Errorf("%s%v\nwant %q", out, err, want)
	}
	if now := lives(t, servers[:2]); now[1].Identity != before[1].Identity {
		t.Errorf("master b has %q, had %q", now[1].Identity, before[1].Identity)
	}
	if out, err := quarantine(t, o, "b", true); err != nil || !strings.Contains(out, "ended its incarnation in databases 0, ") {
		t.Error(out, err)
	}
}

// A daemon that runs meanwhile loses the vote at its next heartbeat.
func TestQuarantine_IsSeenByADaemonThatRuns(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g := p.Start()
	within(t, "master b votes", func() bool { return g.Statuses()[1].State == "voting" })
	before := lives(t, servers)[1]
	if out, err := quarantine(t, o, "b"); err != nil {
		t.Fatal(out, err)
	}
	within(t, "master b has a new incarnation", func() bool {
		incarnation, err := admission.ParseIdentity(identity(t, servers[1]))
		return err == nil && incarnation.ID != before.ID && incarnation.Base > 0
	})
}

func TestQuarantine_KeepsTheRegister(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	register := func() string {
		reply, err := servers[1].Do("ZRANGE", "redlockd:seal", "0", "-1", "WITHSCORES")
		if err != nil {
			t.Fatal(err)
		}
		return reply.([]any)[1].(string)
	}
	before := register()
	if out, err := quarantine(t, o, "b"); err != nil || register() != before {
		t.Errorf("the register is %s, was %s; %v\n%s", register(), before, err, out)
	}
}

func TestQuarantine_LeavesForeignKeysAndBlankMastersAlone(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	for _, s := range servers {
		s.FlushAll()
	}
	if _, err := servers[1].Do("ZADD", "redlockd:seal", "7", "not an identity"); err != nil {
		t.Fatal(err)
	}
	out, err := quarantine(t, o, "b")
	if err == nil || !strings.Contains(err.Error(), "master b has no incarnation at redlockd:seal in any database, so there is nothing to end; nothing was changed") || identity(t, servers[1]) != "not an identity" {
		t.Errorf("%v, %q at the seal\n%s", err, identity(t, servers[1]), out)
	}
}

func TestQuarantine_FailsWithAReason(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	if _, err := quarantine(t, o, "d"); err == nil || !strings.Contains(err.Error(), `"d" is the name or address of no master; nothing was changed; allowed: a=`+servers[0].Addr()) {
		t.Errorf("an unknown name: %v", err)
	}
	replica := faulty.Start(t)
	host, port, _ := strings.Cut(servers[1].Addr(), ":")
	if _, err := replica.Do("REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	within(t, "the replica has caught up", func() bool { return identity(t, replica) != "" })
	alone := optionsOf(servers[0], replica, servers[2])
	alone.MaxTTL = o.MaxTTL
	if _, err := quarantine(t, alone, "b"); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a replica: %v", err)
	}
	servers[1].Kill()
	if _, err := quarantine(t, o, "b"); err == nil || !strings.Contains(err.Error(), "quarantine: master b, at "+servers[1].Addr()+": ") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a master that is down: %v", err)
	}
}

// An incarnation that lost keys does not go on under other settings.
func TestReconfigure_EndsAnIncarnationThatWasEvicted(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	before := lives(t, servers)
	do := func(args ...any) {
		if _, err := servers[1].Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	do("SET", "k", "x", "EX", "1000")
	do("CONFIG", "SET", "maxmemory-policy", "volatile-random")
	do("CONFIG", "SET", "maxmemory", "1")
	within(t, "the key is evicted", func() bool { n, err := servers[1].Do("EXISTS", "k"); return err == nil && n == int64(0) })
	do("CONFIG", "SET", "maxmemory", "0")
	do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	o.MaxTTL *= 2
	if out, err := reconfigure(t, o, false); err != nil {
		t.Fatal(out, err)
	}
	after := lives(t, servers)
	if after[1].ID == before[1].ID || after[0].ID != before[0].ID {
		t.Errorf("incarnations %s and %s, were %s and %s: want that of b, which evicted keys, to end", after[0].ID, after[1].ID, before[0].ID, before[1].ID)
	}
}

// oneReplaced is a group whose master c was replaced by d, which votes. first is the list of
// before, now that of the masters.
func oneReplaced(t *testing.T) (servers []*faulty.Server, first pool.Options, d *faulty.Server, now pool.Options) {
	t.Helper()
	servers, first = bootstrapped(t, 3)
	d = faulty.Start(t)
	if out, err := changeMasters(t, first, "c", masterAt("d", d)); err != nil {
		t.Fatal(out, err)
	}
	now = renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	seen(t, now, 2, "voting")
	return servers, first, d, now
}

// The settings have the list of the first day: the masters have the present one.
func TestQuarantine_FindsAMasterOfThePresentList(t *testing.T) {
	t.Parallel()
	servers, first, d, now := oneReplaced(t)
	list := now.Names(now.Configuration(0))
	for _, gone := range []string{"c", servers[2].Addr()} {
		if out, err := quarantine(t, first, gone); err == nil || !strings.HasSuffix(err.Error(), "nothing was changed; allowed: "+list) {
			t.Errorf("a master that left: %s%v", out, err)
		}
	}
	for _, by := range []string{"d", d.Addr()} {
		before := identity(t, d)
		out, err := quarantine(t, first, by)
		if err != nil || !strings.HasPrefix(out, "epoch 2 has the masters "+list+": this list counts, not that of the settings\nmaster d: ended its incarnation in databases 0") {
			t.Fatal(out, err)
		}
		seen(t, now, 2, "voting")
		if after := identity(t, d); after == before {
			t.Errorf("master d goes on with %q", after)
		}
	}
	servers[0].Kill()
	if out, err := quarantine(t, first, "d"); err == nil || !strings.Contains(err.Error(), "1 of the 2 other masters vote, and a quorum is 2") {
		t.Error(out, err)
	}
}

// As above, and the present list takes the login of the settings along.
func TestBootstrapAged_FindsAMasterOfThePresentList(t *testing.T) {
	t.Parallel()
	servers, first, d, now := oneReplaced(t)
	wipe(t, d)
	for _, s := range []*faulty.Server{servers[0], servers[1], d} {
		if _, err := s.Do("CONFIG", "SET", "requirepass", "secret"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range first.Masters {
		first.Masters[i].Password, now.Masters[i].Password = "secret", "secret"
	}
	servers[1].Kill()
	if out, err := aged(t, first, "c"); err == nil || !strings.HasSuffix(err.Error(), "nothing was changed; allowed: "+now.Names(now.Configuration(0))) {
		t.Error(out, err)
	}
	out, err := aged(t, first, "d")
	if err != nil || !strings.Contains(out, "master d: began an incarnation in 2 databases") {
		t.Fatal(out, err)
	}
	seen(t, now, 2, "voting")
}
