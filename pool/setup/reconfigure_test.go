package setup

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/faulty"
)

// renamed: the names are what the settings of a group hold.
func renamed(o pool.Options, names ...string) pool.Options {
	for i, name := range names {
		o.Masters[i].Name = name
	}
	return o
}

func bootstrapped(t *testing.T, n int) ([]*faulty.Server, pool.Options) {
	t.Helper()
	servers := faulty.StartGroup(t, n)
	o := optionsOf(servers...)
	if err := Bootstrap(t.Context(), o, BootstrapTerms{Force: n%2 == 0}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return servers, o
}

func reconfigure(t *testing.T, o pool.Options, force bool) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Reconfigure(t.Context(), o, ChangeTerms{Force: force}, &out)
	return out.String(), err
}

// identity is what stands at a master's seal in database 0, "" for nothing.
func identity(t *testing.T, s *faulty.Server) string {
	t.Helper()
	reply, err := s.Do("ZRANGE", "redlockd:seal", "0", "-1")
	if err != nil {
		t.Fatal(err)
	}
	if list := reply.([]any); len(list) > 0 {
		return list[0].(string)
	}
	return ""
}

func lives(t *testing.T, servers []*faulty.Server) []*admission.Incarnation {
	t.Helper()
	all := make([]*admission.Incarnation, len(servers))
	for i, s := range servers {
		var err error
		if all[i], err = admission.ParseIdentity(identity(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestReconfigure_ShutsTheFormerDaemonsOutAndLetsTheNewOnesVoteLater(t *testing.T) {
	t.Parallel()
	servers, was := bootstrapped(t, 3)
	before := lives(t, servers)
	now := was
	now.MaxTTL = 2 * brief
	if out, err := reconfigure(t, now, false); err != nil || !strings.Contains(out, "3 masters begin a new incarnation in databases 0-1") {
		t.Fatal(out, err)
	}
	for i, now := range lives(t, servers) {
		if now.ID != before[i].ID {
			t.Errorf("master %d: an unbroken memory lost its incarnation id, and with it its counters", i)
		}
		if now.Base == 0 {
			t.Errorf("master %d votes at once", i)
		}
	}
	seen(t, was, 0, "max-ttl is 200 here and 400 there")
	seen(t, now, 1, "voting")
}

// A slot that leaves a group and comes back would bring its counters' former values along.
func TestReconfigure_ChangesSlotsByForceAndWithoutTrustInCounters(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	before := lives(t, servers)
	o.Slots = "0-8191"
	if out, err := reconfigure(t, o, false); err == nil || !strings.Contains(err.Error(), "group default has the slots 0-8191 here and all on master a; nothing was changed") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := reconfigure(t, o, true); err != nil || !strings.Contains(out, "3 masters begin a new incarnation") {
		t.Fatal(out, err)
	}
	for i, now := range lives(t, servers) {
		if now.ID == before[i].ID || now.Base == 0 {
			t.Errorf("master %d keeps its incarnation id, or votes at once", i)
		}
	}
	seen(t, o, 1, "voting")
	o.Slots = ""
	seen(t, o, 1, "slots is all here and 0-8191 there")
}

// A memory that lacks what another master remembers of it was broken.
func TestReconfigure_AMasterThatWasRolledBackLosesItsIncarnationID(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	before := lives(t, servers)
	later := time.Now().Add(time.Hour).UnixMicro()
	if _, err := servers[1].Do("ZADD", "redlockd:acked", later, "group=default/db=0/master=a"); err != nil {
		t.Fatal(err)
	}
	o.MaxTTL = 2 * brief
	if out, err := reconfigure(t, o, false); err != nil {
		t.Fatal(out, err)
	}
	after := lives(t, servers)
	if after[0].ID == before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("incarnations %s, %s after %s, %s, want another one for the first master only", after[0].ID, after[1].ID, before[0].ID, before[1].ID)
	}
	reply, err := servers[0].Do("ZSCORE", "redlockd:seal", after[0].Identity)
	if register, _ := strconv.ParseInt(reply.(string), 10, 64); err != nil || register < later {
		t.Errorf("its register is %v (%v), below the %d that is remembered", reply, err, later)
	}
}

// Leases of the former settings may outlive those of the new ones.
func TestReconfigure_WaitsForTheLongerOfBothLimits(t *testing.T) {
	servers, was := bootstrapped(t, 3)
	long := was
	long.MaxTTL = time.Hour
	if _, err := reconfigure(t, long, false); err != nil {
		t.Fatal(err)
	}
	out, err := reconfigure(t, was, false)
	if err != nil || !strings.Contains(out, "1h0m") {
		t.Error(out, err)
	}
	for i, now := range lives(t, servers) {
		if ahead := now.Base - time.Now().UnixMicro(); ahead < clock.Micros(59*time.Minute) {
			t.Errorf("master %d: its incarnation begins %d ms from now, although leases of an hour may run", i, ahead/1000)
		}
	}
}

// What longer leases demand holds for a master that comes back empty, and over another change.
func TestReconfigure_TheLongerOfBothLimitsHoldsUntilItIsOver(t *testing.T) {
	servers, was := bootstrapped(t, 3)
	long := was
	long.MaxTTL = time.Hour
	if _, err := reconfigure(t, long, false); err != nil {
		t.Fatal(err)
	}
	if out, err := reconfigure(t, was, false); err != nil {
		t.Fatal(out, err)
	}
	ahead := func(when string) {
		t.Helper()
		for i, now := range lives(t, servers) {
			if ahead := now.Base - time.Now().UnixMicro(); ahead < clock.Micros(55*time.Minute) {
				t.Errorf("%s: master %d: its incarnation begins %d ms from now, although leases of an hour may run", when, i, ahead/1000)
			}
		}
	}
	wipe(t, servers[1])
	seen(t, was, 1, "quarantined")
	ahead("one came back empty")
	next := was
	next.MaxKeep *= 2
	if out, err := reconfigure(t, next, false); err != nil || !strings.Contains(out, "vote in 1h") && !strings.Contains(out, "vote in 59m") {
		t.Error(out, err)
	}
	ahead("another change")
}

// A master that restarts empty waits for the longer leases, and no longer than they last.
func TestReconfigure_TheShorterLimitHoldsWhenTheLongerLeasesAreOver(t *testing.T) {
	t.Parallel()
	servers, was := bootstrapped(t, 3)
	long := was
	long.MaxTTL = 3 * time.Second
	for _, o := range []pool.Options{long, was} {
		if out, err := reconfigure(t, o, false); err != nil {
			t.Fatal(out, err)
		}
	}
	is := running(t, was)
	within(t, "b is admitted", is(1, "quarantined"))
	begins := func() int64 {
		t.Helper()
		servers[1].RestartEmpty()
		within(t, "a daemon begins with b", func() bool { return identity(t, servers[1]) != "" })
		return lives(t, servers)[1].Base
	}
	others := max(lives(t, servers)[0].Base, lives(t, servers)[2].Base)
	first := begins()
	if first < others {
		t.Errorf("b begins %d ms before the others, although leases of 3 s may run", (others-first)/1000)
	}
	within(t, "b votes", is(1, "voting"))
	// The daemon's estimate of a clock is off by a part of a round trip, the wrong end by seconds.
	if us := time.Now().UnixMicro(); us < others+clock.Micros(was.Age()-20*time.Millisecond) {
		t.Errorf("b votes %d ms before the longer leases are over", (others+clock.Micros(was.Age())-us)/1000)
	}
	second := begins()
	if ahead := second - time.Now().UnixMicro(); second <= first || ahead > 0 {
		t.Errorf("b begins %d ms from now, %d ms after its first begin, although no longer leases run", ahead/1000, (second-first)/1000)
	}
}

func TestReconfigure_ChangesNothingUnlessAllMastersAnswer(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	before := identity(t, servers[0])
	servers[2].Kill()
	o.MaxTTL = 2 * brief
	if _, err := reconfigure(t, o, true); err == nil || !strings.Contains(err.Error(), "needs all 3 masters: master c") {
		t.Errorf("got %v", err)
	}
	if now := identity(t, servers[0]); now != before {
		t.Errorf("master a carries %q", now)
	}
}

func TestReconfigure_ReplacesAMinorityOfTheMasters(t *testing.T) {
	servers, _ := bootstrapped(t, 3)
	d, e := faulty.Start(t), faulty.Start(t)
	two := renamed(optionsOf(servers[0], d, e), "a", "d", "e")
	before := identity(t, servers[0])
	if _, err := reconfigure(t, two, false); err == nil || !strings.Contains(err.Error(), "Replace a minority") {
		t.Fatalf("two of three masters were replaced: %v", err)
	}
	if identity(t, servers[0]) != before || identity(t, d) != "" {
		t.Error("refused, and changed all the same")
	}
	one := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	if out, err := reconfigure(t, one, false); err != nil {
		t.Fatal(out, err)
	}
	if out, err := reconfigure(t, two, true); err != nil {
		t.Error(out, err)
	}
}

// Five masters become three: a quorum of two need not meet the three that knew
// the last id, so no master is trusted with counters any more.
func TestReconfigure_KeepsNoCountersWhereQuorumsNeedNotMeet(t *testing.T) {
	servers, _ := bootstrapped(t, 5)
	before := lives(t, servers)
	if out, err := reconfigure(t, optionsOf(servers[:3]...), true); err != nil {
		t.Fatal(out, err)
	}
	for i, now := range lives(t, servers[:3]) {
		if now.ID == before[i].ID {
			t.Errorf("master %d kept its incarnation id", i)
		}
	}
}

func TestReconfigure_RefusesAMasterThatWasAway(t *testing.T) {
	t.Parallel()
	servers, first := bootstrapped(t, 3)
	d := faulty.Start(t)
	second := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	servers[2].Stop()
	if _, err := reconfigure(t, second, false); err != nil {
		t.Fatal(err)
	}
	servers[2].Cont()
	third := first
	third.MaxTTL = 2 * brief
	if _, err := reconfigure(t, third, false); err == nil || !strings.Contains(err.Error(), "one of them has been away") {
		t.Errorf("got %v", err)
	}
	// With the settings that c still carries, it begins a new incarnation with a new id.
	before := lives(t, servers)
	if out, err := reconfigure(t, first, false); err != nil {
		t.Fatal(out, err)
	}
	after := lives(t, servers)
	if after[2].ID == before[2].ID || after[2].Base == 0 {
		t.Errorf("master c goes on where it was: %+v", after[2])
	}
	if after[0].ID != before[0].ID {
		t.Error("master a was never away and lost its incarnation id")
	}
}

func TestReconfigure_SaysWhenThereIsNothingToChange(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	if _, err := reconfigure(t, o, false); err == nil || !strings.Contains(err.Error(), "redlockd bootstrap") {
		t.Errorf("a new group: %v", err)
	}
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	before := identity(t, servers[0])
	if out, err := reconfigure(t, o, false); err != nil || !strings.Contains(out, "in force already") || identity(t, servers[0]) != before {
		t.Error(out, err)
	}
	o.Group = "another"
	if _, err := reconfigure(t, o, false); err == nil || !strings.Contains(err.Error(), `belongs to group "default"`) {
		t.Errorf("a master of another group: %v", err)
	}
}

// Between the look and the writing a daemon may have admitted a master anew.
func TestReconfigure_WritesOnlyOverWhatItHasSeen(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		t.Fatal(err)
	}
	all, err := g.connectAll(context.Background(), "test")
	defer closeAll(all)
	if err != nil {
		t.Fatal(err)
	}
	r := &reconfiguration{group: g, all: all}
	if err := g.readSeals(all, "reconfigure"); err != nil {
		t.Fatal(err)
	}
	before := identity(t, servers[1])
	all[1].seals[0].identity = "another one"
	if err := r.write(0); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("got %v", err)
	}
	if identity(t, servers[1]) != before {
		t.Error("an identity was overwritten that had not been read")
	}
}

// Identities of the format before epochs are another version's.
func TestReconfigure_TakesAGroupOfTheFormerFormatOver(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	if err := o.WithDefaults(); err != nil {
		t.Fatal(err)
	}
	for i, s := range servers {
		for db := range o.Databases {
			was := strings.Replace(o.Fingerprint(db, "", string(rune('a'+i))), "format=v2", "format=v1", 1)
			was = strings.Replace(was, "/epoch=", "", 1)
			const write = "redis.call('SELECT', ARGV[1]) local old = redis.call('ZRANGE', KEYS[1], 0, 0)[1] redis.call('DEL', KEYS[1]) " +
				"return redis.call('ZADD', KEYS[1], 5, string.match(old, '^(%S+ %S+ %S+ %S+ )') .. ARGV[2])"
			if _, err := s.Do("EVAL", write, 1, "redlockd:seal", db, was); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen(t, o, 0, "another version of redlockd left")
	if out, err := reconfigure(t, o, false); err != nil || !strings.Contains(out, "3 masters begin a new incarnation") {
		t.Fatal(out, err)
	}
	seen(t, o, 0, "voting")
}

// What one operator left half done the next one finishes, and no other change begins meanwhile.
func TestReconfigure_AnUnfinishedChangeIsFinishedAndNotReplaced(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	d := faulty.Start(t)
	next, other := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d"), renamed(optionsOf(servers[0], servers[2], d), "a", "c", "d")
	g, err := newGroup(next, stepTimeout)
	if err := errors.Join(err, o.WithDefaults()); err != nil {
		t.Fatal(err)
	}
	c := &change{group: g, out: io.Discard, former: o.Configuration(1), next: g.options.Configuration(2)}
	c.connect(t.Context(), next.Masters[:1])
	defer closeAll(c.all)
	if err := c.renameAll(false); err != nil {
		t.Fatal(err)
	}
	rival := *c
	rival.next = other.Configuration(2)
	before := identity(t, servers[0])
	if err := rival.renameAll(false); err == nil || !strings.Contains(err.Error(), "another change, to epoch 2, came first on master a; ") || identity(t, servers[0]) != before {
		t.Errorf("a change renamed what another one had, or its operator was not told: %v, %q", err, identity(t, servers[0]))
	}
	seen(t, next, 0, "refused waits for the configuration of the group")
	if out, err := reconfigure(t, other, false); err == nil || !strings.Contains(err.Error(), "a change to epoch 2 is unfinished") {
		t.Fatal(out, err)
	}
	if out, err := reconfigure(t, next, false); err != nil || !strings.Contains(out, "the change to epoch 2 is unfinished") || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatal(out, err)
	}
	seen(t, next, 2, "voting")
	if out, err := reconfigure(t, next, false); err != nil || !strings.Contains(out, "in force already; nothing was changed") {
		t.Fatal(out, err)
	}
}

// A master that is dead need not answer.
func TestReconfigure_ReplacesADeadMasterAndKeepsTheMemoryOfTheOthers(t *testing.T) {
	t.Parallel()
	servers, _ := bootstrapped(t, 3)
	before := lives(t, servers)
	servers[2].Kill()
	now := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	if out, err := reconfigure(t, now, false); err != nil || !strings.Contains(out, "c is not reached") {
		t.Fatal(out, err)
	}
	for i, l := range lives(t, servers[:2]) {
		if l.ID != before[i].ID || l.Base != before[i].Base || l.RunID != before[i].RunID {
			t.Errorf("master %d: %+v, was %+v", i, l, before[i])
		}
	}
	seen(t, now, 0, "voting")
	seen(t, now, 2, "voting")
}
