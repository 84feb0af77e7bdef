package setup

// leftbehind_test.go: a daemon that missed a change of the masters never begins with a blank
// one. Beside a master that the change left out, it would be a quorum of the former settings.

import (
	"strings"
	"testing"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// replacedMaster bootstraps a, b and c and puts d in the place of c.
func replacedMaster(t *testing.T) (servers []*faulty.Server, former, now pool.Options) {
	t.Helper()
	servers, former = bootstrapped(t, 3)
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
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	g := p.Start()
	return func(lane int, text string) func() bool {
		return func() bool {
			s := g.Statuses()[lane]
			return strings.Contains(s.State+" "+s.Detail, text)
		}
	}
}

func wipe(t *testing.T, s *faulty.Server) {
	t.Helper()
	if _, err := s.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
}

const leftBehind = "refused is empty, and a served daemons with other settings"

func TestAdmission_ADaemonThatMissedAChangeBeginsWithNoBlankMaster(t *testing.T) {
	t.Parallel()
	servers, former, now := replacedMaster(t)
	wipe(t, servers[1])
	seen(t, former, 1, leftBehind)
	if got := identity(t, servers[1]); got != "" {
		t.Fatalf("it began with %q", got)
	}
	seen(t, now, 1, "voting")
	seen(t, former, 1, "serves daemons with other settings")
}

// What it has seen it does not forget when the master is gone.
func TestAdmission_ADaemonThatMissedAChangeRemembersWhatRefusedIt(t *testing.T) {
	servers, former, now := replacedMaster(t)
	is := running(t, former)
	within(t, "a refuses the daemon", is(0, "serves daemons with other settings"))
	servers[0].Kill()
	within(t, "a is gone", is(0, "down"))
	wipe(t, servers[1])
	within(t, "the daemon does not begin with b", is(1, leftBehind))
	seen(t, now, 1, "quarantined") // a daemon that has seen no other settings does
}

// Nor does it when the master answers with an error.
func TestAdmission_AStrangerThatRefusesToAnswerIsStillOne(t *testing.T) {
	servers, former, _ := replacedMaster(t)
	is := running(t, former)
	within(t, "a refuses the daemon", is(0, "serves daemons with other settings"))
	if _, err := servers[0].Do("ACL", "SETUSER", "default", "-zrange"); err != nil {
		t.Fatal(err)
	}
	within(t, "a refuses its commands", is(0, "the admission script is refused"))
	wipe(t, servers[1])
	within(t, "the daemon does not begin with b", is(1, leftBehind))
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
