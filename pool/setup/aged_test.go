package setup

// aged_test.go: one blank master begins because the operator requests it.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
)

func aged(t *testing.T, o pool.Options, master string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := BootstrapAged(t.Context(), o, master, &out)
	return out.String(), err
}

// A blank master beside a silent one, of three: the command begins it, and it does not vote at
// once.
func TestBootstrapAged_BeginsWithABlankMasterBesideASilentOne(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	servers[1].Kill()
	wipe(t, servers[2])
	const hint = "c: is empty, and only 1 of 3 masters answer with the settings of the group, 2 are needed: no daemon begins with it. Bring back b. If they are gone for good: run redlockd bootstrap --aged c; it votes"
	wantReason(t, o, hint)
	for _, by := range []string{"c", servers[2].Addr()} {
		wipe(t, servers[2])
		before := time.Now().Add(-time.Second).UnixMicro()
		out, err := aged(t, o, by)
		if err != nil || !strings.Contains(out, "master c: began an incarnation in 2 databases; it votes in "+humanDuration(o.Age())) {
			t.Fatalf("%v\n%s", err, out)
		}
		if keys, bases := standsOn(t, servers[2]); len(keys) != 4 || bases[0] == "0" || bases[1] == "0" || bases[0] == "" {
			t.Errorf("it has %q and begins at %q", keys, bases)
		}
		incarnation, err := admission.ParseIdentity(identity(t, servers[2]))
		if err != nil || incarnation.Base < before || !strings.HasSuffix(incarnation.Fingerprint, "/master=c") {
			t.Errorf("%v: %+v", err, incarnation)
		}
	}
	if out, err := check(t, o); strings.Contains(out, "--aged") || !errors.Is(err, ErrUnfit) {
		t.Errorf("%v\n%s", err, out)
	}
	seen(t, o, 2, "voting")
}

// What the others remember of the master's register, and demand of its age, holds.
func TestBootstrapAged_KeepsWhatTheOthersRemember(t *testing.T) {
	servers, was := bootstrapped(t, 3)
	long := was
	long.MaxTTL = time.Hour
	for _, o := range []pool.Options{long, was} { // leases of an hour may still run
		if out, err := reconfigure(t, o, false); err != nil {
			t.Fatal(out, err)
		}
	}
	later := time.Now().Add(time.Hour).UnixMicro()
	if _, err := servers[0].Do("ZADD", "redlockd:acked", later, "group=default/db=0/master=c"); err != nil {
		t.Fatal(err)
	}
	servers[1].Kill()
	wipe(t, servers[2])
	if out, err := aged(t, was, "c"); err != nil || !strings.Contains(out, "it votes in 59m") && !strings.Contains(out, "it votes in 1h") {
		t.Fatalf("%v\n%s", err, out)
	}
	incarnation, err := admission.ParseIdentity(identity(t, servers[2]))
	if err != nil || incarnation.Base < time.Now().Add(55*time.Minute).UnixMicro() {
		t.Errorf("%v: %+v", err, incarnation)
	}
	if seal := theSeal(t, servers[2], 0); !strings.Contains(seal, fmt.Sprint(later)) {
		t.Errorf("the register is not %d: %s", later, seal)
	}
}

func TestBootstrapAged_RefusesWhereItIsNotNeededOrNotSafe(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	refuses := func(o pool.Options, master, says string) {
		t.Helper()
		before := fmt.Sprint(standing3(t, servers))
		if out, err := aged(t, o, master); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n%s\nwant %q", err, out, says)
		}
		if after := fmt.Sprint(standing3(t, servers)); after != before {
			t.Errorf("the masters have %s, had %s", after, before)
		}
	}
	refuses(o, "x", `bootstrap --aged: "x" is the name or address of no master; nothing was changed; allowed: a=`+servers[0].Addr())
	refuses(o, "c", "master c is not blank: it has an identity in every database; nothing was changed")
	wipe(t, servers[2])
	refuses(o, "c", "2 of 3 masters answer with the settings of the group, 2 are needed: a daemon begins with master c by itself")
	other := o
	other.MaxTTL *= 2
	refuses(other, "c", "master a serves daemons with other settings in database 0: max-ttl is 400 here and 200 there")
	wipe(t, servers[1])
	wipe(t, servers[0])
	refuses(o, "c", "all masters are blank: run redlockd bootstrap")
	refuses(optionsOf(servers[0], servers[1], servers[1]), "c", "masters b and c are the same server")
	relay := faulty.NewRelay(servers[2].Addr())
	t.Cleanup(relay.Close)
	relay.Refuse()
	gone := optionsOf(servers...)
	gone.Masters[2].Address = relay.Addr()
	refuses(gone, "c", "bootstrap --aged: master c="+relay.Addr()+" is not reached: ")
}

// standing3 are the seals of the masters.
func standing3(t *testing.T, servers []*faulty.Server) (all []string) {
	t.Helper()
	for _, s := range servers {
		all = append(all, theSeal(t, s, 0), theSeal(t, s, 1))
	}
	return all
}
