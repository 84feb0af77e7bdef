package setup

import (
	"errors"
	"io"
	"strings"
	"testing"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

func changeMasters(t *testing.T, o pool.Options, leave string, join ...wire.Master) (string, error) {
	t.Helper()
	var out strings.Builder
	err := ChangeMasters(t.Context(), o, MastersChange{Join: join, Leave: strings.Fields(leave)}, ChangeTerms{}, &out)
	return out.String(), err
}

func masterAt(name string, s *faulty.Server) wire.Master {
	return wire.Master{Name: name, Network: "tcp", Address: s.Addr()}
}

// carry fails unless each master carries the epoch.
func carry(t *testing.T, epoch string, servers ...*faulty.Server) {
	t.Helper()
	for i, s := range servers {
		if got := identity(t, s); !strings.Contains(got, "/epoch="+epoch+"-") {
			t.Errorf("master %d carries %q, want epoch %s", i, got, epoch)
		}
	}
}

// All steps have the masters of the first day: the present list is on the masters.
func TestChangeMasters_GoesOnFromTheListOnTheMasters(t *testing.T) {
	t.Parallel()
	servers, first := bootstrapped(t, 3)
	a, b, c, d, e := servers[0], servers[1], servers[2], faulty.Start(t), faulty.Start(t)
	out, err := changeMasters(t, first, "", masterAt("d", d), masterAt("e", e))
	if err != nil || !strings.Contains(out, "epoch 1 has the masters a="+a.Addr()) || !strings.Contains(out, ",e="+e.Addr()+"\n") || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "2", a, b, c, d, e)
	var report strings.Builder
	if err := Check(t.Context(), first, false, &report); err != nil || !strings.Contains(report.String(), "your list differs; daemons use a="+a.Addr()) || strings.Count(report.String(), " yes\n") != 5 {
		t.Errorf("a check with the former list: %s%v", report.String(), err)
	}
	if out, err := changeMasters(t, first, "d "+e.Addr()); err == nil || !strings.Contains(err.Error(), "from 5 masters to 3: a quorum of 2 need not meet one of 3; nothing was changed. First change to 4 of them, then to 3") {
		t.Fatal(out, err)
	}
	if out, err := changeMasters(t, first, e.Addr()); err != nil || !strings.Contains(out, "e leaves") || !strings.Contains(out, "epoch 3 is in force") {
		t.Fatal(out, err)
	}
	if out, err := changeMasters(t, first, "d"); err != nil || !strings.Contains(out, "epoch 4 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "4", a, b, c, d)
	out, err = changeMasters(t, first, "c", masterAt("f", e)) // e was left behind with epoch 3
	if err != nil || !strings.Contains(out, "c leaves") || !strings.Contains(out, "epoch 5 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "5", a, b, e)
	if out, err := changeMasters(t, first, "c", masterAt("f", e)); err != nil || !strings.Contains(out, "in force already; nothing was changed") {
		t.Error("the same command again:", out, err)
	}
	carry(t, "5", a, b, e)
	now := renamed(optionsOf(a, b, e), "a", "b", "f")
	for lane := range 3 {
		seen(t, now, lane, "voting")
	}
}

func TestChangeMasters_RefusesWithWhatIsAllowed(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	d := faulty.Start(t)
	before := lives(t, servers)
	long := o
	long.MaxTTL *= 2
	for _, step := range []struct {
		o     pool.Options
		leave string
		join  []wire.Master
		want  string
	}{
		{o, "c", nil, "masters: 2 given, 3 to 9 allowed"},
		{o, "c", nil, "nothing was changed. To put a master in the place of another one: redlockd masters replace"},
		{o, "x", []wire.Master{masterAt("d", d)}, `"x" is the name or address of no master; nothing was changed; allowed: a=` + servers[0].Addr()},
		{o, "", []wire.Master{masterAt("c", servers[2])}, "masters: c=" + servers[2].Addr() + " is in the list already"},
		{o, "c", []wire.Master{masterAt("c", d)}, "a master is called c already, at " + servers[2].Addr() + "; nothing was changed. Give the new one another name"},
		{o, "", []wire.Master{masterAt("d", servers[2])}, servers[2].Addr() + " is the address of master c; nothing was changed"},
		{o, "b c", []wire.Master{masterAt("d", d), masterAt("e", faulty.Start(t))}, "Replace a minority at a time"},
		{long, "", []wire.Master{masterAt("d", d)}, "max-ttl=400 here and max-ttl=200 there; nothing was changed. This command changes the list alone"},
		{optionsOf(d, faulty.Start(t), faulty.Start(t)), "", []wire.Master{masterAt("x", servers[0])}, `masters: 3 of 3 masters answer, and none has a configuration of group "default"; nothing was changed. A new group begins with redlockd bootstrap`},
	} {
		out, err := changeMasters(t, step.o, step.leave, step.join...)
		if err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("leave %q, join %v:\n%s%v\nwant %q", step.leave, step.join, out, err, step.want)
		}
	}
	for i, now := range lives(t, servers) {
		if *now != *before[i] {
			t.Errorf("master %d changed: %+v, was %+v", i, now, before[i])
		}
	}
	if got := identity(t, d); got != "" {
		t.Errorf("d has %q", got)
	}
}

// A master that does not answer, or is unfit, cannot take the place of another one by mistake.
func TestChangeMasters_AdmitsAnAbsentMasterOnRequestAlone(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	before := lives(t, servers)
	servers[2].Kill()
	gone, replica := faulty.Start(t), faulty.Start(t)
	host, port, _ := strings.Cut(servers[0].Addr(), ":")
	if _, err := replica.Do("REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	absent := masterAt("d", gone)
	gone.Kill()
	for want, joins := range map[string]wire.Master{
		"reconfigure: d=" + absent.Address + " joins and is not reached: ": absent,
		" joins and is left alone: it is a slave":                          masterAt("r", replica),
	} {
		out, err := changeMasters(t, o, "c", joins)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed. In the new list it cannot vote: a quorum would be 2 of the other 2 masters.") || !strings.Contains(err.Error(), "add --absent") {
			t.Errorf("want %q in\n%s%v", want, out, err)
		}
	}
	for i, now := range lives(t, servers[:2]) {
		if *now != *before[i] {
			t.Errorf("master %d changed: %+v, was %+v", i, now, before[i])
		}
	}
	var out strings.Builder
	if err := ChangeMasters(t.Context(), o, MastersChange{Join: []wire.Master{absent}, Leave: []string{"c"}}, ChangeTerms{Absent: true}, &out); err != nil || !strings.Contains(out.String(), "epoch 2 is in force") {
		t.Fatal(out.String(), err)
	}
	if out, err := changeMasters(t, o, "c", absent); err != nil {
		t.Errorf("the same change again, when it is begun: %s%v", out, err)
	}
}

// A change waits rather than leave a list of masters of which too few vote yet.
func TestChangeMasters_WaitsForMastersThatAreNew(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	if out, err := quarantine(t, o, "a"); err != nil {
		t.Fatal(out, err)
	}
	seen(t, o, 0, "quarantined")
	out, err := changeMasters(t, o, "c", masterAt("d", faulty.Start(t)))
	if err != nil || !strings.Contains(out, "too few masters of the new list vote yet: waiting ") || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "2", servers[0], servers[1])
}

// interruptedChange is one that has got to the first master.
func interruptedChange(t *testing.T, o, next pool.Options) {
	t.Helper()
	g, err := newGroup(next, stepTimeout)
	if err := errors.Join(err, o.WithDefaults()); err != nil {
		t.Fatal(err)
	}
	c := &change{group: g, out: t.Output(), former: o.Configuration(1), next: g.options.Configuration(2)}
	c.connect(t.Context(), next.Masters[:1])
	defer closeAll(c.all)
	if err := c.renameAll(false); err != nil {
		t.Fatal(err)
	}
}

// The same command finishes a change that was interrupted, another one is refused.
func TestChangeMasters_FinishesAnInterruptedChange(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	d := faulty.Start(t)
	interruptedChange(t, o, renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d"))
	if out, err := changeMasters(t, o, "b", masterAt("d", d)); err == nil || !strings.Contains(err.Error(), "a change to epoch 2 is unfinished, and another one must not replace it; nothing was changed. First finish it: redlockd reconfigure --masters a="+servers[0].Addr()) {
		t.Fatal(out, err)
	}
	if out, err := changeMasters(t, o, "c", masterAt("d", d)); err != nil || !strings.Contains(out, "the change to epoch 2 is unfinished") || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "2", servers[0], servers[1], d)
}

// A server that serves another group would not vote for this one, or would leave the other one.
func TestChangeMasters_RefusesAServerOfAnotherGroup(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"theirs", "default"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			servers, o := bootstrapped(t, 3)
			others := faulty.StartGroup(t, 3)
			theirs := optionsOf(others...)
			theirs.Group = group
			if err := Bootstrap(t.Context(), theirs, BootstrapTerms{}, io.Discard); err != nil {
				t.Fatal(err)
			}
			before := lives(t, append(servers, others...))
			joins := masterAt("d", others[0])
			want := "d=" + joins.Address + " joins and serves group theirs; nothing was changed."
			if group == "default" {
				want = "d=" + joins.Address + " joins and serves another group of this name, with the masters a=" + others[0].Addr()
			}
			for _, leave := range []string{"", "c"} {
				if out, err := changeMasters(t, o, leave, joins); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s%v", out, err)
				}
			}
			for i, now := range lives(t, append(servers, others...)) {
				if *now != *before[i] {
					t.Errorf("master %d changed: %+v, was %+v", i, now, before[i])
				}
			}
			wipe(t, others[0])
			if out, err := changeMasters(t, o, "c", joins); err != nil || !strings.Contains(out, "epoch 2 is in force") {
				t.Fatal(out, err)
			}
		})
	}
}

// A database that daemons do not use stays blank when its masters restart without files, one after the
// other: they begin with a master where they use it. That must not end all changes.
func TestChangeMasters_BlankDatabasesThatNoDaemonUsesAreNoHindrance(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	for _, s := range servers[:2] {
		if _, err := s.Do("EVAL", "redis.call('SELECT', 1) redis.call('FLUSHDB')", 0); err != nil {
			t.Fatal(err)
		}
	}
	d := faulty.Start(t)
	out, err := changeMasters(t, o, "c", masterAt("d", d))
	if err != nil || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatal(out, err)
	}
	carry(t, "2", servers[0], servers[1], d)
	for i, s := range []*faulty.Server{servers[0], servers[1], d} {
		if seal := theSeal(t, s, 1); !strings.Contains(seal, "/db=1/") || !strings.Contains(seal, "/epoch=2-") {
			t.Errorf("master %d has %q in the database that was blank", i, seal)
		}
	}
}

// Rule: blank-carries. No database of a master that lost its memory shows what the others of it carry.
func TestChangeMasters_AMasterThatWasEmptiedCarriesNothing(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	for _, s := range servers[1:] {
		if _, err := s.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	out, err := changeMasters(t, o, "c", masterAt("d", faulty.Start(t)))
	if err == nil || !strings.Contains(err.Error(), "of the masters of the former list that carry epoch 1, a answer") {
		t.Fatalf("emptied masters count: %s %v", out, err)
	}
}
