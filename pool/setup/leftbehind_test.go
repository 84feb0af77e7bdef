package setup

// leftbehind_test.go: a daemon that missed a change of the masters never begins with a blank
// one. Beside a master that the change left out, it would be a quorum of the former settings.

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
)

// replacedMaster bootstraps a, b and c and puts d in the place of c, which is not reached
// meanwhile: it keeps what it carries.
func replacedMaster(t *testing.T) (servers []*faulty.Server, former, now pool.Options) {
	t.Helper()
	servers, former = bootstrapped(t, 3)
	former.FollowOff = true
	servers[2].Stop()
	defer servers[2].Cont()
	now = renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	if out, err := reconfigure(t, now, false); err != nil {
		t.Fatal(out, err)
	}
	return servers, former, now
}

// running starts a daemon's lanes until the test ends. What it returns makes the condition that
// a master's state and detail have a text.
func running(t *testing.T, o pool.Options) (is func(lane int, text string) func() bool) {
	t.Helper()
	reports := statuses(t, o)
	return func(lane int, text string) func() bool {
		return func() bool {
			s := reports()[lane]
			return strings.Contains(s.State+" "+s.Detail, text)
		}
	}
}

// statuses starts a daemon's lanes until the test ends.
func statuses(t *testing.T, o pool.Options) func() []pool.MasterReport {
	t.Helper()
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.Start().Reports
}

func wipe(t *testing.T, s *faulty.Server) {
	t.Helper()
	if _, err := s.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
}

func TestAdmission_ADaemonThatMissedAChangeBeginsWithNoBlankMaster(t *testing.T) {
	t.Parallel()
	servers, former, now := replacedMaster(t)
	wipe(t, servers[1])
	seen(t, former, 1, "refused is empty, and 1 of 3 masters carry the configuration (c), and 2 must")
	if got := identity(t, servers[1]); got != "" {
		t.Fatalf("it began with %q", got)
	}
	seen(t, now, 1, "voting")
	seen(t, former, 1, "serves daemons with other settings")
}

// Operators see on each daemon which configuration a master carries.
func TestStatus_ShowsWhichConfigurationAMasterCarries(t *testing.T) {
	t.Parallel()
	servers, former := bootstrapped(t, 3)
	former.FollowOff = true
	behind := statuses(t, former)
	all := func(daemon func() []pool.MasterReport, want string) func() bool {
		return func() bool {
			var words []string
			for _, r := range daemon() {
				words = append(words, fmt.Sprintf("%s %d %s", r.Name, r.Epoch, r.Configuration))
			}
			return strings.Join(words, ", ") == want
		}
	}
	within(t, "all carry epoch 1", all(behind, "a 1 current, b 1 current, c 1 current"))
	now := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	if out, err := reconfigure(t, now, false); err != nil {
		t.Fatal(out, err)
	}
	within(t, "the daemon is behind", all(behind, "a 2 newer, b 2 newer, c 2 left"))
	if got := pool.Epoch(behind()); got != 0 {
		t.Errorf("no master carries its configuration, and it has epoch %d", got)
	}
	follows := statuses(t, now)
	within(t, "another daemon has it", all(follows, "a 2 current, b 2 current, d 2 current"))
	if got := pool.Epoch(follows()); got != 2 {
		t.Errorf("epoch %d, want 2", got)
	}
}

// A process that knows the former configuration does not either, whatever it sees later.
func TestAdmission_ADaemonThatMissesAChangeBeginsWithNoBlankMaster(t *testing.T) {
	t.Parallel()
	servers, former := bootstrapped(t, 3)
	former.FollowOff = true
	is := running(t, former)
	within(t, "c votes", is(2, "voting"))
	now := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	if out, err := reconfigure(t, now, false); err != nil || !strings.Contains(out, "epoch 2 is in force") || !strings.Contains(out, "c leaves: it refuses daemons") {
		t.Fatal(out, err)
	}
	within(t, "a refuses the daemon", is(0, "left behind: this daemon has epoch 1, and the master has 2"))
	within(t, "c refuses the daemon", is(2, "serves daemons with other settings"))
	servers[0].Kill()
	within(t, "a is gone", is(0, "down"))
	wipe(t, servers[1])
	wipe(t, servers[2])
	within(t, "the daemon does not begin with b", is(1, "refused is empty, and 0 of 3 masters carry the configuration"))
	within(t, "the daemon does not begin with b, and it names the change", is(1, "left behind: the masters have epoch 2: --masters a="))
	for i := range 2 {
		if got := identity(t, servers[1+i]); got != "" {
			t.Errorf("it began with %q", got)
		}
	}
}

// A quorum of its own masters shows that it missed nothing.
func TestAdmission_AQuorumOfAdmittedMastersMayBeginBesideAStranger(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 5)
	wipe(t, servers[4])
	other := renamed(optionsOf(servers[4], faulty.Start(t), faulty.Start(t)), "e", "f", "g")
	seen(t, other, 0, "quarantined")
	wipe(t, servers[1])
	seen(t, o, 1, "voting")
	seen(t, o, 4, "serves daemons with other settings")
}

// Without a bootstrap, a daemon begins with a new group that is blank as a whole, and with no part of it.
func TestAdmission_OnlyABlankGroupBeginsByItself(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	servers[2].Kill()
	seen(t, o, 0, "refused is empty, and 0 of 3 masters carry the configuration (none), and 2 must do so for 1.5s before it is put on another one; no answer from c: bring it back")
	if got := identity(t, servers[0]); got != "" {
		t.Errorf("it began with %q", got)
	}
	servers[2].Restart()
	seen(t, o, 2, "voting")
}

// A power loss takes all memories but one; the group comes back by itself when all masters answer.
func TestAdmission_AGroupThatIsBlankButForOneMasterComesBack(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	is := running(t, o)
	within(t, "all vote", is(2, "voting"))
	servers[0].RestartEmpty()
	servers[1].RestartEmpty()
	for i, s := range servers {
		within(t, "it votes again", func() bool { return identity(t, s) != "" && is(i, "voting")() })
	}
	for i, l := range lives(t, servers) {
		if (l.Base == 0) != (i == 2) {
			t.Errorf("master %d: base %d, want a new one where the memory was lost", i, l.Base)
		}
	}
}

// Daemons with a wrong list or a wrong limit claim none of the masters that restart empty one by one.
func TestAdmission_AStrayDaemonClaimsNoMasterThatRestartsEmpty(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	is := running(t, o)
	within(t, "all vote", is(2, "voting"))
	short := o
	short.MaxTTL /= 2
	running(t, short)
	running(t, renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "x"))
	for i, s := range servers {
		before := identity(t, s)
		s.RestartEmpty()
		within(t, "the daemon of the group begins with it", func() bool {
			now := identity(t, s)
			return now != "" && now != before
		})
		if got, want := admission.FingerprintOf(identity(t, s)), admission.FingerprintOf(before); got != want {
			t.Fatalf("master %d carries %q, want %q", i, got, want)
		}
		within(t, "it votes", is(i, "voting"))
	}
}

// Locks would be held twice.
func TestAdmission_AnotherKeyPrefixOfTheGroupIsRefused(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	other := o
	other.KeyPrefix = "locks:"
	for i := range servers {
		seen(t, other, i, `--key-prefix is "", and this daemon's is "locks:": locks would be held twice`)
	}
	other.Group = "another"
	seen(t, other, 2, "quarantined")
	seen(t, o, 0, "voting")
}

// Five masters become three in the steps that the command names, while the last one is down and returns empty.
func TestReconfigure_FiveMastersBecomeThree(t *testing.T) {
	t.Parallel()
	servers, five := bootstrapped(t, 5)
	five.FollowOff = true
	stale := running(t, five)
	within(t, "all vote", stale(4, "voting"))
	three := optionsOf(servers[:3]...)
	if out, err := reconfigure(t, three, false); err == nil || !strings.Contains(err.Error(), "First change to 4 of them, then to 3") {
		t.Fatal(out, err)
	}
	servers[4].Kill()
	if out, err := reconfigure(t, optionsOf(servers[:4]...), false); err != nil || !strings.Contains(out, "e is not reached") {
		t.Fatal(out, err)
	}
	before := lives(t, servers[:3])
	if out, err := reconfigure(t, three, false); err != nil || !strings.Contains(out, "epoch 3 is in force") {
		t.Fatal(out, err)
	}
	for i, now := range lives(t, servers[:3]) {
		if now.ID != before[i].ID || now.Base != 0 {
			t.Errorf("master %d lost its memory: %+v", i, now)
		}
	}
	servers[4].RestartEmpty()
	wipe(t, servers[2])
	is := running(t, three)
	within(t, "c votes again", is(2, "voting"))
	for i := range 4 {
		within(t, "the daemon with five masters is refused", stale(i, "refused"))
	}
	if got := identity(t, servers[4]); got != "" {
		t.Errorf("the daemon with five masters began with e: %q", got)
	}
}

// A daemon of the group with another key prefix finds each seal of its own missing.
func TestAdmission_AnotherKeyPrefixClaimsNoMasterThatRestartsEmpty(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	other := o
	other.KeyPrefix = "locks:"
	for i, s := range servers {
		s.RestartEmpty() // while no daemon of the group runs
		seen(t, other, i, "refused is empty, and 0 of 3 masters carry the configuration (none)")
		if keys := s.Keys(); len(keys) != 0 {
			t.Errorf("master %d has %q", i, keys)
		}
		seen(t, o, i, "voting")
	}
}

// The master that left refuses the daemons of each list, with the reason.
func TestReconfigure_AMasterThatLeftRefusesEveryDaemon(t *testing.T) {
	t.Parallel()
	servers, former := bootstrapped(t, 3)
	former.FollowOff = true
	is := running(t, former)
	within(t, "c votes", is(2, "voting"))
	d := faulty.Start(t)
	now := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	if out, err := reconfigure(t, now, false); err != nil || !strings.Contains(out, "c leaves: it refuses daemons in 2 databases") {
		t.Fatal(out, err)
	}
	const left = "this master left the group at epoch 2"
	within(t, "c refuses the daemon that it has served", is(2, left))
	seen(t, former, 2, left)
	mistaken := renamed(optionsOf(servers[0], servers[2], d), "a", "c", "d")
	mistaken.FollowOff = true
	seen(t, mistaken, 1, left)
	alone := renamed(optionsOf(servers[2], faulty.Start(t), faulty.Start(t)), "c", "x", "y")
	seen(t, alone, 0, left)
	if got := identity(t, servers[2]); !strings.Contains(got, "/epoch=2-") {
		t.Errorf("c carries %q", got)
	}
	// A later change has it again, as a new one.
	before := lives(t, servers)
	again := renamed(optionsOf(servers[0], servers[1], servers[2]), "a", "b", "c")
	if out, err := reconfigure(t, again, false); err != nil {
		t.Fatal(out, err)
	}
	seen(t, again, 2, "voting")
	if now := lives(t, servers); now[2].ID == before[2].ID || now[2].Base == 0 {
		t.Errorf("c goes on where it was: %+v", now[2])
	}
}

// A wrong option is no change of the group that the daemon missed; a limit that changes while it
// serves is one.
func TestAdmission_AWrongLimitIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	_, o := bootstrapped(t, 3)
	for _, c := range []struct {
		change    func(*pool.Options)
		log       string
		says, not string
	}{
		{func(o *pool.Options) { o.MaxTTL *= 2 }, "settings of this daemon are not those of the group", "max-ttl is 400 here and 200 there", "left behind"},
		{func(o *pool.Options) { o.MaxKeep *= 3 }, "settings of this daemon are not those of the group", "max-keep is 600 here and 200 there", "left behind"},
		{func(*pool.Options) {}, "this daemon was left behind by a change of the group", "left behind: the masters have epoch ", "are not those of the group"},
	} {
		own, log := o, new(faulty.Log)
		c.change(&own)
		own.Logger = slog.New(slog.NewTextHandler(log, nil))
		reports := statuses(t, own)
		if own.MaxTTL == o.MaxTTL && own.MaxKeep == o.MaxKeep { // the group changes, and not the daemon
			within(t, "c votes", func() bool { return reports()[2].State == "voting" })
			next := o
			next.MaxTTL *= 2
			if out, err := reconfigure(t, next, false); err != nil {
				t.Fatal(out, err)
			}
		}
		within(t, c.says, func() bool {
			return strings.Contains(reports()[0].Detail, c.says) && strings.Contains(log.String(), c.log)
		})
		if text := log.String() + reports()[0].Detail; strings.Contains(text, c.not) {
			t.Errorf("%q is in\n%s", c.not, text)
		}
	}
}
