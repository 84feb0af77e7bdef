package chaos

// stand_test.go: the processes of a run: masters, daemons, and the relays between them.

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// All daemons of a stand share these, unless its plan has others. They are short, because a master without
// memory has to wait for the longest lease before it votes.
const (
	maxTTL  = time.Second
	maxKeep = 3 * time.Second
	age     = maxTTL + maxTTL/100 + 2*time.Second // see stand.age
)

// Names of keys that stay on a master when all clients are served.
const (
	sealKey          = "redlockd:seal"
	recordsKey       = "redlockd:acked"
	configurationKey = "redlockd:configuration"
	counterKey       = "redlockd:id:"
)

// plan is the size and the kind of a stand.
type plan struct {
	masters int // of each group
	groups  int // of masters, over which the slots are spread; 0: one
	daemons int
	durable bool // masters that forget nothing over a crash
	clocks  bool // masters whose clocks can be stepped
	spared  bool // a majority of masters, with the links to them
	changed bool // an operator replaces the masters

	maxLease  time.Duration // lease; 0: maxTTL
	keep      time.Duration // memory of finished work; 0: maxKeep
	unguarded bool          // masters vote at once although they may have forgotten
	lazy      bool          // masters that expire keys only when they are read
	timeout   time.Duration // of a master; 0: the default of the daemons
	binary    string        // of the daemons; "": that of this tree
	former    bool          // the first daemon is that of an older commit
	databases int           // that clients use; 0: one
	far       time.Duration // round trip to the farthest master; 0: all are near
	admin     bool          // daemons show their metrics
	aliased   bool          // each daemon reaches one of two masters by the last one's name, too
}

// stand is masters, daemons, and a relay for each pair of them.
type stand struct {
	t       testing.TB
	plan    plan
	binary  string
	former  string // the binary of an older commit; "": there is none
	masters []*faulty.Server
	daemons []*daemon

	leftovers int // keys that stayed on masters
}

func newStand(t testing.TB, p plan) *stand {
	t.Helper()
	binary := p.binary
	if binary == "" {
		var err error
		if binary, err = buildDaemon(); err != nil {
			t.Fatal(err)
		}
	}
	s := &stand{t: t, plan: p, binary: binary}
	if p.former {
		s.former = formerVersion(t, cmp.Or(os.Getenv("CHAOS_UPGRADE_FROM"), lastRelease)).binary
	}
	s.startMasters()
	s.bootstrap()
	for range p.daemons {
		s.daemons = append(s.daemons, s.startDaemon())
	}
	for _, d := range s.daemons {
		d.awaitVotes()
	}
	return s
}

func (s *stand) startMasters() {
	s.t.Helper()
	var args []string
	if s.plan.durable {
		args = []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	if s.plan.lazy {
		args = append(args, "--enable-debug-command", "yes")
	}
	s.masters = make([]*faulty.Server, s.plan.masters*max(1, s.plan.groups))
	var all sync.WaitGroup
	for i := range s.masters {
		all.Go(func() { s.masters[i] = faulty.Options{Clock: s.plan.clocks}.Start(s.t, args...) })
	}
	all.Wait()
	for _, m := range s.masters {
		if s.plan.lazy {
			if _, err := m.Do("DEBUG", "SET-ACTIVE-EXPIRE", 0); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// bootstrap lets the new group vote at once. It has time: nothing is measured
// yet, and what ends half-way cannot be repeated.
func (s *stand) bootstrap(words ...string) {
	s.t.Helper()
	cmd := s.subcommand("bootstrap", s.binary)
	cmd.Args = append(cmd.Args, words...)
	if output, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("redlockd bootstrap: %v\n%s", err, output)
	}
}

// subcommand is one of a daemon's program, with the settings of the daemons.
func (s *stand) subcommand(word, binary string) *exec.Cmd {
	direct := make([]string, len(s.masters))
	for i, m := range s.masters {
		direct[i] = m.Addr()
	}
	cmd := exec.Command(binary, append([]string{word, "--master-timeout", "5s"}, s.settings(direct)...)...)
	cmd.Env = environment()
	return cmd
}

// settings are what all daemons of a group have in common. The masters' names
// are the same for all; the addresses are those of relays.
func (s *stand) settings(addresses []string) []string {
	named := make([]string, len(addresses))
	for i, address := range addresses {
		named[i] = masterName(i) + "=" + address
	}
	words := []string{"--masters", strings.Join(named, ",")}
	if s.plan.groups > 0 {
		words = []string{"--config", s.groupFile(named)}
	}
	words = append(words,
		"--max-ttl", s.maxLease().String(), "--max-keep", s.keep().String(),
	)
	if s.plan.unguarded {
		words = append(words, "--restart-guard", "off")
	}
	if !s.plan.durable {
		words = append(words, "--ids-durability", "off")
	}
	return words
}

// distance is by how much the link of a daemon and a master delays every byte. The first master of
// the first daemon is near, its last one is the farthest, and another daemon has others nearby.
func (s *stand) distance(daemon, master int) time.Duration {
	const near = time.Millisecond
	if s.plan.far == 0 {
		return 0
	}
	at := (daemon + master) % len(s.masters)
	return (near + (s.plan.far-near)*time.Duration(at*at)/time.Duration((len(s.masters)-1)*(len(s.masters)-1))) / 2 // each way
}

func masterName(i int) string { return string(rune('a' + i)) }

// minority is how many masters of a group may fail.
func (s *stand) minority() int { return (s.groupSize() - 1) / 2 }

// longest lease that the daemons give.
func (s *stand) maxLease() time.Duration { return cmp.Or(s.plan.maxLease, maxTTL) }

// keep is how long finished work is remembered.
func (s *stand) keep() time.Duration { return cmp.Or(s.plan.keep, maxKeep) }

// age is the documented time until a master that forgot votes: the longest
// lease, 1 %, and two seconds.
func (s *stand) age() time.Duration { return s.maxLease() + s.maxLease()/100 + 2*time.Second }

// identity is what a master's seal holds, as words: run_id, incarnation id, base, …;
// nil if it holds none or does not answer.
func (s *stand) identity(i int) []string {
	members, err := s.masters[i].Do("ZRANGE", sealKey, 0, -1)
	list, ok := members.([]any)
	if err != nil || !ok || len(list) != 1 {
		return nil
	}
	words := strings.SplitN(list[0].(string), " ", 5)
	if len(words) != 5 {
		return nil
	}
	return words
}

// aged reports whether a master's memory is older than every lease.
func (s *stand) aged(i int) bool {
	words := s.identity(i)
	if words == nil {
		return false
	}
	base, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return false
	}
	now, err := s.masters[i].Do("TIME")
	clock, ok := now.([]any)
	if err != nil || !ok {
		return false
	}
	seconds, _ := strconv.ParseInt(clock[0].(string), 10, 64)
	return seconds*1_000_000 >= base+s.age().Microseconds()
}

// left are the keys on a master that are a client's lock or work, of all
// databases; bookkeeping that is documented to stay is passed over.
func (s *stand) left(i int) ([]string, error) {
	c, err := faulty.Dial(s.masters[i].Addr(), waitTimeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	info, err := c.Do("INFO", "keyspace")
	if err != nil {
		return nil, err
	}
	var left []string
	for line := range strings.Lines(info.(string)) {
		db, _, found := strings.Cut(strings.TrimPrefix(line, "db"), ":")
		if !found || !strings.HasPrefix(line, "db") {
			continue
		}
		if _, err := c.Do("SELECT", db); err != nil {
			return nil, err
		}
		keys, err := c.Do("KEYS", "*")
		if err != nil {
			return nil, err
		}
		for _, key := range keys.([]any) {
			name := key.(string)
			if name == sealKey || name == recordsKey || name == configurationKey || strings.HasPrefix(name, counterKey) {
				continue
			}
			value, _ := c.Do("GET", name) // of no string: an error
			ttl, err := c.Do("PTTL", name)
			if err != nil {
				return nil, err
			}
			// A failed acquire with a client's token may leave a copy where its connection ended (PROOF.md).
			// If the master's clock is set back, that lasts for as much longer.
			if ms := ttl.(int64); ms < maxTTL.Milliseconds() || !strings.HasPrefix(fmt.Sprint(value), "token-") {
				left = append(left, fmt.Sprintf("%s in database %s, with %v, for %d ms", name, db, value, ms))
			}
		}
	}
	slices.Sort(left)
	return left, nil
}

// awaitEmpty: with the longest lease and the longest memory of finished work
// over, nothing of the clients' is left on any master.
func (s *stand) awaitEmpty() {
	s.t.Helper()
	for i := range s.masters {
		var left []string
		var err error
		if !eventually(func() bool { left, err = s.left(i); return err == nil && len(left) == 0 }) {
			s.leftovers += len(left)
			s.t.Errorf("master %s still keeps %q (%v) after %v; leases last %v at most, work is remembered for %v",
				masterName(i), left, err, waitTimeout, maxTTL, maxKeep)
		}
	}
}

// awaitIdle: no daemon has a waiter, or a lock to renew.
func (s *stand) awaitIdle() {
	s.t.Helper()
	for i, d := range s.daemons {
		if !eventually(func() bool {
			listed, err := d.ask("DWAITERS")
			rows, ok := listed.([]any)
			return err == nil && ok && len(rows) == 0 && d.info("locks", "waiters") == "0" && d.info("locks", "holds") == "0"
		}) {
			s.t.Errorf("all clients have gone, and after %v daemon %d counts %s waiters and %s holds", waitTimeout, i,
				d.info("locks", "waiters"), d.info("locks", "holds"))
		}
	}
}
