package redlock

// epoch_test.go: neither a change of the masters nor a blank group gives a key to two holders.

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

// configurationKey is a hash on every master, with the configurations of the groups.
const configurationKey = "redlockd:configuration"

// aroundScripts calls around for each script that is sent in full and has such a key: with that of the
// configuration, admissions and renames; with the seal's, also what a change carries over before it renames.
func aroundScripts(o *pool.Options, key string, around func(master string, send func())) {
	hooked(o, func(master string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) (replies []pool.Reply) {
		if commands[0].Args[0] != "EVAL" || !slices.Contains(commands[0].Args, key) {
			return exchange(commands)
		}
		around(master, func() { replies = exchange(commands) })
		return replies
	})
}

// operator runs commands that reach some of the masters by relays of their own.
type operator struct {
	*cluster
	relays   map[string]*faulty.Relay
	guardOff bool
}

func (c *cluster) operator(masters ...int) *operator {
	p := &operator{cluster: c, relays: map[string]*faulty.Relay{}}
	for _, i := range masters {
		p.relays[name(i)] = faulty.NewRelay(c.servers[i].Addr())
		c.t.Cleanup(p.relays[name(i)].Close)
	}
	return p
}

func (p *operator) cutOff() {
	for _, r := range p.relays {
		r.Refuse()
		r.Cut()
	}
}

func (p *operator) optionsFor(masters ...int) pool.Options {
	o := p.cluster.optionsFor(masters...)
	o.RestartGuardOff = p.guardOff
	for i, m := range o.Masters {
		if r := p.relays[m.Name]; r != nil {
			o.Masters[i].Address = r.Addr()
		}
	}
	return o
}

func (p *operator) bootstrap(masters ...int) {
	p.t.Helper()
	if err := setup.Bootstrap(p.t.Context(), p.optionsFor(masters...), setup.BootstrapTerms{Force: len(masters)%2 == 0}, p.t.Output()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *operator) reconfigure(masters ...int) {
	p.t.Helper()
	if err := setup.Reconfigure(p.t.Context(), p.optionsFor(masters...), setup.ChangeTerms{Absent: true}, p.t.Output()); err != nil {
		p.t.Fatal(err)
	}
}

// reconfigureAround runs a change, and work, of another operator or at the masters, between what it reads
// and its first rename.
func (c *cluster) reconfigureAround(work func(), masters ...int) error {
	o := c.optionsFor(masters...)
	var first sync.Once
	aroundScripts(&o, configurationKey, func(_ string, send func()) { first.Do(work); send() })
	return setup.Reconfigure(c.t.Context(), o, setup.ChangeTerms{Absent: true}, c.t.Output())
}

// readOnly has masters refuse every write, or accept them again.
func (c *cluster) readOnly(on bool, masters ...int) {
	c.t.Helper()
	replicas := map[bool]int{true: 1}[on]
	for _, i := range masters {
		c.do(i, "CONFIG", "SET", "min-replicas-to-write", replicas)
	}
}

// leave cuts a daemon off from these masters for good.
func (d *daemon) leave(lanes ...int) {
	d.t.Helper()
	for _, i := range lanes {
		d.relays[i].Refuse()
		d.relays[i].Cut()
	}
	for _, i := range lanes {
		d.await(i, "down")
	}
}

// bareGrant takes a key through a daemon with three masters that reaches all but one of them. It
// takes no part in what follows.
func bareGrant(c *cluster, ttl time.Duration, without int, masters []int, traits ...trait) Grant {
	c.t.Helper()
	d := c.startDaemon(append(traits, listing(masters...), relayed)...)
	for i := range masters {
		d.await(i, "voting")
	}
	d.leave(without)
	g := d.take("k", ttl)
	d.leave(0, 1, 2)
	return g
}

// alone wants the key to be refused to another daemon while the first lease is valid.
func alone(d *daemon, first Grant, by string) error {
	d.t.Helper()
	g, err := d.lockAs("k", "token-of-a-caller", time.Second)
	if err == nil && first.Validity() > 0 {
		d.t.Fatalf("two tokens hold %q: one for %v by %s, and one for %v", "k", first.Validity(), by, g.Validity())
	}
	return err
}

// either waits until a master has one of these states, or a reason with such words.
func (d *daemon) either(i int, words ...string) {
	d.t.Helper()
	eventually(d.t, "master "+name(i)+" is "+strings.Join(words, " or "), func() bool {
		state, why := d.state(i)
		for _, word := range words {
			if strings.Contains(state+" "+why, word) {
				return true
			}
		}
		return false
	})
}

// Rule: one-epoch. The daemon's list is in force again after two changes. The master that was
// away meanwhile carries the first epoch, and lacks what the second one's quorum granted.
func TestEpoch_AConnectionOfBeforeTwoChangesDoesNotVote(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	p := c.operator(2)
	p.bootstrap(0, 1, 2)
	one := c.startDaemon(pinned, listing(0, 1, 2), relayed)
	one.await(2, "voting")
	one.leave(0, 1) // it would see the later configuration there, and give the connection up
	p.cutOff()
	p.guardOff = true // nothing is held that a change would wait for
	p.reconfigure(0, 1, 3)
	one.await(2, "voting")
	first := bareGrant(c, long, 0, []int{0, 1, 3}, unbound)
	p.reconfigure(0, 1, 2)
	one.relays[0].Accept()
	one.relays[1].Accept()
	one.either(0, "voting", "this daemon admits masters in")
	noQuorum(t, alone(one, first, "{b, d}"), "0 of 3")
}

// Rule: newcomer-first. The new master would be old enough when the change is finished, while
// leases of the former list run.
func TestEpoch_AChangeThatIsInterruptedBeginsWithNoNewMaster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, 10*time.Second)
	c.bootstrapOf(0, 1, 2)
	if err := c.reconfigureAround(func() { c.readOnly(true, 0, 1, 2) }, 0, 1, 3); err == nil {
		t.Fatal("a change is in force on masters that refuse writes")
	}
	c.readOnly(false, 0, 1, 2)
	if began := c.do(3, "ZCARD", "redlockd:seal") != int64(0); began {
		sleepUntil(t, time.Now().Add(c.age()), "the new master is old enough to vote")
	}
	first := bareGrant(c, 10*time.Second, 1, []int{0, 1, 2})
	c.reconfigure(0, 1, 3)
	two := c.startDaemon(listing(0, 1, 3))
	two.await(0, "voting")
	two.await(1, "voting")
	two.either(2, "voting", "quarantined")
	if err := alone(two, first, "{a, c}"); err == nil {
		t.Log("the first lease is over: nothing is shown")
	}
}

// Rule: rename-blind. Two operators have read the same masters; the second one must not rename
// what the first one has renamed.
func TestEpoch_OfTwoChangesAtOnceOneTakesPlace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	c.bootstrapOf(0, 1, 2)
	var first Grant
	err := c.reconfigureAround(func() {
		c.reconfigure(0, 1, 3)
		first = bareGrant(c, long, 0, []int{0, 1, 3}, unbound)
	}, 0, 2, 4)
	two := c.startDaemon(pinned, listing(0, 2, 4))
	two.either(0, "voting", "other settings")
	two.either(1, "voting", "other settings")
	noQuorum(t, alone(two, first, "{b, d}"), "0 of 3")
	if err == nil || !strings.Contains(err.Error(), "another change, to epoch 2, came first on master a") {
		t.Errorf("the second change: %v", err)
	}
	one := c.startDaemon(unbound, listing(0, 1, 3))
	one.await(1, "voting")
	one.await(2, "voting")
	isHeld(t, alone(one, first, "{b, d}"))
}

// Rule: raised. A change renames the seal of a master while the network holds a flush between the
// two commands of its own: the register that the change carried over was not raised, and no daemon
// may believe that it was. Otherwise the master passes for one whose memory was rolled back.
func TestEpoch_AChangeWithinASealKeepsItsRegisterFromRising(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, time.Second)
	c.bootstrapOf(0, 1, 2)
	incarnation := func() string { // what it has is "<process> <incarnation> …"
		return strings.Fields(c.do(0, "ZRANGE", "redlockd:seal", 0, -1).([]any)[0].(string))[1]
	}
	var ready, began atomic.Bool // the operator waits for a flush; it has begun with a
	within, renamed := make(chan struct{}), make(chan struct{})
	d := c.startDaemon(listing(0, 1, 2), func(_ *daemon, o *pool.Options) {
		hooked(o, func(master string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply {
			raise := slices.IndexFunc(commands, func(c pool.Command) bool { return c.Args[0] == "ZADD" && c.Args[1] == "redlockd:seal" })
			if master != name(0) || raise < 0 || !ready.CompareAndSwap(true, false) {
				return exchange(commands)
			}
			replies := slices.Clone(exchange(commands[:raise]))
			close(within)
			<-renamed
			return append(replies, exchange(commands[raise:])...)
		})
	})
	for i := range 3 {
		d.await(i, "voting")
	}
	was := incarnation()
	o := c.optionsFor(0, 1, 3)
	aroundScripts(&o, configurationKey, func(master string, send func()) {
		if master != name(0) || !began.CompareAndSwap(false, true) {
			send()
			return
		}
		ready.Store(true)
		<-within
		send()
		close(renamed)
	})
	ended := make(chan error, 1)
	go func() { ended <- setup.Reconfigure(t.Context(), o, setup.ChangeTerms{Absent: true}, t.Output()) }()
	eventually(t, "the change renames a seal within a flush", func() bool {
		if g, err := d.lock("other", time.Second); err == nil {
			_, _ = d.unlock("other", g.Token)
		}
		select {
		case <-renamed:
			return true
		default:
			return false
		}
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	d.lists(0, 1, 3)
	for i := range 3 {
		d.await(i, "voting")
	}
	if now := incarnation(); now != was {
		t.Errorf("incarnation %s of master a became %s: it passed for a memory that was rolled back", was, now)
	}
}

// Rule: in-force. Two operators have each renamed a half of four masters, which is a quorum of
// their lists of three.
func TestEpoch_OfTwoChangesThatStopHalfwayNoneIsUsed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 6, long)
	c.bootstrapOf(0, 1, 2, 3)
	err := c.reconfigureAround(func() { // of the two, this one would take the place of the other
		if err := c.reconfigureAround(func() { c.readOnly(true, 0, 1) }, 2, 3, 5); err == nil {
			t.Error("a change is in force on two masters of four")
		}
		c.readOnly(false, 0, 1)
	}, 0, 1, 4)
	if err == nil {
		t.Error("another change is in force on the other two")
	}
	one, two := c.startDaemon(listing(0, 1, 4)), c.startDaemon(listing(2, 3, 5))
	for _, d := range []*daemon{one, two} {
		for i := range 2 {
			d.either(i, "voting", "waits for the configuration of the group")
		}
	}
	first, err := one.lockAs("k", "token-of-another", long)
	if err == nil {
		_ = alone(two, first, "{a, b}")
	}
	noQuorum(t, err, "0 of 3")
	_, err = two.lock("k", time.Second)
	noQuorum(t, err, "0 of 3")
}

// Rule: lost-change. Of two operators one has reached d alone. The other one has stopped when a quorum
// of the four masters had its change, and before one had stored that it is in force. Daemons use it,
// so it must not be replaced.
func TestEpoch_AChangeThatHasAQuorumIsNotReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 6, long)
	c.bootstrapOf(0, 1, 2, 3)
	c.servers[4].Kill() // with a new master, that the change is in force would be stored
	c.servers[5].Kill()
	one := c.startDaemon(listing(0, 1, 2, 3), relayed)
	one.await(3, "voting")
	o, renames := c.optionsFor(0, 1, 4), 0
	aroundScripts(&o, configurationKey, func(_ string, send func()) {
		if renames++; renames == 1 {
			if c.reconfigureAround(func() { c.readOnly(true, 0, 1, 2) }, 2, 3, 5) == nil {
				t.Error("a change is in force on one master of four")
			}
			c.readOnly(false, 0, 1, 2)
		}
		if send(); renames == 4 {
			c.readOnly(true, 0, 1, 2, 3)
		}
	})
	_ = setup.Reconfigure(t.Context(), o, setup.ChangeTerms{Absent: true}, t.Output())
	c.readOnly(false, 0, 1, 2, 3)
	one.lists(0, 1, 4)
	one.countsVotesOf(0)
	one.countsVotesOf(1)
	first := one.take("k", long)
	for _, r := range one.relays {
		r.Refuse()
		r.Cut()
	}
	err := setup.Reconfigure(t.Context(), c.optionsFor(2, 3, 5), setup.ChangeTerms{Absent: true}, t.Output())
	if err == nil {
		two := c.startDaemon(listing(2, 3, 5))
		two.await(0, "voting")
		two.await(1, "voting")
		_ = alone(two, first, "{a, b}")
	}
	if err == nil || !strings.Contains(err.Error(), "a change to epoch 2 is unfinished") {
		t.Errorf("the other change: %v", err)
	}
}

// countsVotesOf waits until the daemon counts those of a master, wherever that is in its list.
func (d *daemon) countsVotesOf(master int) {
	d.t.Helper()
	eventually(d.t, "master "+name(master)+" votes", func() bool {
		return slices.ContainsFunc(d.Masters(0), func(m MasterStatus) bool { return m.Name == name(master) && m.State == "voting" })
	})
}

// milestone is over once, for all that wait for it.
type milestone struct {
	over chan struct{}
	end  func()
}

func newMilestone() milestone {
	over := make(chan struct{})
	return milestone{over, sync.OnceFunc(func() { close(over) })}
}

func (m milestone) wait() {
	select {
	case <-m.over:
	case <-time.After(patience):
	}
}

// turns orders the admissions of two daemons on a blank group. They begin when both daemons have
// found all their masters blank. Then the first daemon goes first on a, and the second on b.
type turns struct{ ready, wrote [2]milestone }

func newTurns() *turns {
	return &turns{[2]milestone{newMilestone(), newMilestone()}, [2]milestone{newMilestone(), newMilestone()}}
}

// of is the trait of one of the two daemons, 0 or 1.
func (u *turns) of(i int) trait {
	return func(_ *daemon, o *pool.Options) {
		aroundScripts(o, configurationKey, func(master string, send func()) {
			u.ready[i].end()
			u.ready[1-i].wait()
			if master == name(1-i) {
				u.wrote[1-i].wait()
			}
			send()
			if master == name(i) {
				u.wrote[i].end()
			}
		})
	}
}

// Rule: claims-order. Of a blank group two lists could each begin with a quorum.
func TestEpoch_ABlankGroupBeginsWithOneOfTwoLists(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	u := newTurns()
	var both [2]*daemon
	var started sync.WaitGroup
	for i := range both {
		started.Go(func() { both[i] = c.startDaemon(unbound, u.of(i), listing(0, 1, 2+i)) })
	}
	started.Wait()
	eventually(t, "one of the daemons has a quorum", func() bool { return both[0].votes() >= 2 || both[1].votes() >= 2 })
	both[0].idle()
	both[1].idle()
	first, err := both[0].lockAs("k", "token-of-another", long)
	if err == nil {
		err = alone(both[1], first, "{a, c}")
	}
	noQuorum(t, err, "of 3")
}

// votes is how many masters vote for the daemon.
func (d *daemon) votes() (n int) {
	for _, m := range d.Masters(0) {
		if m.State == "voting" {
			n++
		}
	}
	return n
}
