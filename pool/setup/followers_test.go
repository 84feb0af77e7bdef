package setup

// followers_test.go: an operator reads which daemons use the new configuration.

import (
	"io"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

// follows is what is written of the daemon of the test.
var follows = "\ndaemon " + admission.DaemonName() + " at 127.0.0.1 uses epoch 2\n"

// admitted is a connection as a daemon has one on a master.
func admitted(t *testing.T, s *faulty.Server, name string) {
	t.Helper()
	link, err := wire.DialRueidis(stepTimeout)(t.Context(), masterAt("x", s), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	if r, err := wire.AskOne(link, "CLIENT", "SETNAME", name); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
}

// One daemon follows. Another one stopped before the change: what stood of it does not come back.
func TestReconfigure_NamesTheDaemonsThatDoNotFollow(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	is := running(t, o)
	for lane := range 3 {
		within(t, "the daemon is admitted", is(lane, "voting"))
	}
	next := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	admitted(t, servers[0], "redlockd:default:epoch-1:web-7%20b/4711")
	admitted(t, servers[1], "redlockd:default:epoch-1:web-7%20b/4711")
	admitted(t, servers[1], "redlockd:billing:epoch-1:of-another-group/1")
	admitted(t, servers[1], "redlockd") // of an earlier version
	out, err := reconfigure(t, next, false)
	if err != nil || !strings.Contains(out, follows) || !strings.Contains(out, "\ndaemon web-7 b/4711 at 127.0.0.1 (epoch 1) did not follow in 5s: ") {
		t.Error(out, err)
	}
	out, err = check(t, next)
	if err != nil || !strings.Contains(out, follows) ||
		!strings.Contains(out, "\ndaemon web-7 b/4711 at 127.0.0.1 uses epoch 1; it is stale and grants nothing: its log has the reason\n") || strings.Contains(out, "of-another-group") {
		t.Error(out, err)
	}
}

// Each daemon shows those that the masters list.
func TestStatus_ShowsTheDaemonsOfTheGroup(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	admitted(t, servers[1], "redlockd:default:epoch-0:web-7/4711")
	reports := statuses(t, o)
	within(t, "the daemon lists itself and the stale one", func() bool {
		stale := pool.StaleDaemons(reports())
		return len(pool.Daemons(reports())) == 2 && len(stale) == 1 && stale[0].Name == "web-7/4711" && len(reports()[1].StaleDaemons()) == 1
	})
}

// A daemon that no master admits is not forgotten.
func TestAdmission_ARefusedDaemonShowsItsEpoch(t *testing.T) {
	t.Parallel()
	servers, former := bootstrapped(t, 3)
	former.FollowOff = true
	is := running(t, former)
	within(t, "a votes", is(0, "voting"))
	if out, err := reconfigure(t, renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d"), false); err != nil {
		t.Fatal(out, err)
	}
	within(t, "a refuses it", is(0, "refused"))
	within(t, "a lists it", func() bool {
		list, err := servers[0].Do("CLIENT", "LIST")
		return err == nil && strings.Contains(list.(string), "name=redlockd:default:epoch-1:")
	})
}

func TestReconfigure_ReportsThatAllDaemonsFollow(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	is := running(t, o)
	for lane := range 3 {
		within(t, "the daemon is admitted", is(lane, "voting"))
	}
	next := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	if out, err := reconfigure(t, next, false); err != nil || !strings.Contains(out, follows) || strings.Contains(out, "did not follow") {
		t.Error(out, err)
	}
}

// The options list the masters of before the change.
func TestAwaitVotes_EndsWhenTheNewMasterVotes(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	o.MaxTTL = 4 * time.Second
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	d := faulty.Start(t)
	now := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	now.MaxTTL = o.MaxTTL
	if out, err := reconfigure(t, now, false); err != nil {
		t.Fatal(out, err)
	}
	var out strings.Builder
	if err := AwaitVotes(t.Context(), o, &out); err != nil || !strings.Contains(out.String(), " until all masters vote\nall masters that answer vote\n") {
		t.Error(out.String(), err)
	}
	began := lives(t, []*faulty.Server{d})[0]
	parts, err := d.Do("TIME")
	if err != nil {
		t.Fatal(err)
	}
	us, _ := wire.ParseTime(wire.Reply{Kind: wire.ReplyArray, Items: []wire.Reply{{Kind: wire.ReplyString, Str: parts.([]any)[0].(string)}, {Kind: wire.ReplyString, Str: parts.([]any)[1].(string)}}})
	if !began.MayVote(us, now.Age()) {
		t.Errorf("the new master may not vote yet: %s at %d", began.Identity, us)
	}
}
