package chaos

// upgrade_test.go: an upgrade, and the way back. The daemons of another commit and of this
// tree serve one group of masters side by side while clients work. Daemons change their
// version one at a time, in the steps of configs/MEMBERSHIP.md, in both directions.
//
// Nothing that is promised may break. A client whose daemon was not restarted receives no
// error; each connection of a restarted daemon loses few commands. The master timeout is
// long, so that the clients' errors do not depend on the speed of the machine.
//
// CHAOS_UPGRADE_FROM is the other commit, or last. CHAOS_UPGRADE_MUTANT names a mutant that
// the daemons of this tree are; the test fails if the run passes then.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
	"redlockd/redlock/mutants"
)

const (
	upgradeTimeout = time.Second // of a master
	// upgradeGrants is how many locks each daemon grants between two steps.
	upgradeGrants = 20
	// upgradeRounds is how often daemons of both versions mix after the way back.
	upgradeRounds = 2
	// commandsLost is how many commands a connection may lose when its daemon drains. One
	// finds the connection closed. Before that waits receive SHUTDOWN, on a slow machine a
	// few of them.
	commandsLost = 10
	// shortTime is below every lease and every wait that the clients request. On a slow
	// machine that time may be over before the masters answer, or receive the command:
	// EXPIRED, or NOQUORUM with a reason of these. Within shortTime that is an error.
	shortTime   = 10 * time.Millisecond
	timeOver    = "(the time for it was over)"
	notAnswered = "has not answered yet"
	// sameFlush is a NOQUORUM of contention: the masters gave two locks of one key in one
	// flush, to a token that changes its mode, for example, and the second one is not used.
	sameFlush = "another acquire in the same flush succeeded before"
	// forgotten is a NOQUORUM about a lock that a bare quorum had, one of which was started
	// empty since: neither have enough masters the lock, nor do enough deny it. Only
	// requests for something new never depend on that.
	forgotten = "quarantined (its memory is new"
)

var newRequests = []any{"DLOCK", "DMLOCK", "SET", "DWORK", "DNEXTID"}

// upgradeTrades has clients of every kind.
func upgradeTrades() []trade {
	return []trade{
		crowded(locksTrade(), 4), crowded(dropInTrade(), 3), crowded(idsTrade(), 2), crowded(worksTrade(), 3), crowded(fairTrade(), 4),
		crowded(readersTrade(), 3), crowded(holdingTrade(), 3), crowded(permitsTrade(), 3), crowded(severalTrade(), 2), crowded(waitingTrade(), 3),
	}
}

// upgrade is a run whose daemons change their version.
type upgrade struct {
	*run
	old, next version
	empty     int // masters that were started empty and may not vote yet

	mu       sync.Mutex
	failures []failure
	emptied  []period // in which a master was started empty
}

// failure is a command, or a dial, without an answer.
type failure struct {
	command
	at  time.Duration
	err error
}

type period struct{ from, to time.Duration }

func startUpgrade(t *ledger, old, next version, masters int, trades []trade) *upgrade {
	t.Helper()
	p := plan{masters: masters, daemons: 3, timeout: upgradeTimeout, binary: old.binary}
	u := &upgrade{run: startRun(t, mix{"upgrade", p, trades, named()}, chosenSeed(t)), old: old, next: next}
	u.answers.failed = u.note
	return u
}

func (u *upgrade) note(c command, err error) {
	at := u.answers.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failures = append(u.failures, failure{c, at, err})
}

func TestUpgrade(t *testing.T) {
	from := os.Getenv("CHAOS_UPGRADE_FROM")
	if from == "" {
		t.Skip("a run of its own: make upgrade")
	}
	book, mutant := &ledger{TB: t}, os.Getenv("CHAOS_UPGRADE_MUTANT")
	old, next := formerVersion(t, from), thisVersion(t)
	if mutant != "" {
		next = mutantVersion(t, mutant)
		book.expected = true
	}
	u := startUpgrade(book, old, next, 5, upgradeTrades())
	defer func() { t.Logf("the run took %v, without the builds", u.answers.now().Round(time.Second)) }()
	defer u.keepIfFailed()
	if old.format == next.format {
		u.during(u.thereAndBack)
	} else {
		u.during(u.refused)
	}
	u.finish()
	if mutant != "" && len(book.sentences()) == 0 {
		t.Errorf("the daemons of this tree are the mutant %s, and the run passed", mutant)
	}
}

// mutantVersion is the daemon of this tree as one of the mutants.
func mutantVersion(t *testing.T, name string) version {
	t.Helper()
	if mutants.Find(name) == nil {
		t.Fatalf("CHAOS_UPGRADE_MUTANT: %q is no mutant; allowed are %q", name, mutants.Names())
	}
	return version{name: "mutant", binary: breed(t), format: formatOf(t, root), env: []string{mutants.Variable + "=" + name}}
}

// during runs steps while the clients work.
func (u *upgrade) during(steps func(context.Context)) {
	ctx, cancel := context.WithCancel(u.t.Context())
	var load sync.WaitGroup
	load.Go(func() { u.loadUntil(ctx, false) })
	for i, m := range u.stand.masters {
		load.Go(func() { u.nemesis.watchProcess(ctx, watchedMaster(i), m.Pid) })
	}
	defer load.Wait()
	defer cancel()
	u.serve()
	steps(ctx)
}

// watchedMaster is the number of a master among the processes that are watched.
func watchedMaster(i int) int { return allDaemons - 1 - i }

// thereAndBack is the upgrade of all daemons, the way back in the other order, and daemons
// of both versions in turn, while a master is started empty.
func (u *upgrade) thereAndBack(ctx context.Context) {
	u.check(u.next)
	for i := range u.stand.daemons {
		u.change(ctx, i, u.next)
	}
	u.check(u.old)
	for i := range u.stand.daemons {
		u.change(ctx, len(u.stand.daemons)-1-i, u.old)
	}
	for round := range upgradeRounds {
		u.change(ctx, 1, u.next)
		aged := u.startEmpty(ctx, round%len(u.stand.masters))
		u.change(ctx, 0, u.next)
		u.change(ctx, 1, u.old)
		u.change(ctx, 2, u.next)
		aged()
		u.change(ctx, 0, u.old)
		u.change(ctx, 2, u.old)
	}
	for i := range u.stand.daemons {
		u.change(ctx, i, u.next)
	}
}

// checkWord and noDifference are of the first step of the runbook.
const (
	checkWord    = "check"
	noDifference = "serves daemons with other settings"
)

// check has a version check the masters that the other one serves.
func (u *upgrade) check(v version) {
	u.t.Helper()
	output, err := u.stand.subcommand(checkWord, v.binary).CombinedOutput()
	if err != nil {
		u.t.Errorf("redlockd %s of the %s version: %v; both versions store format %s\n%s", checkWord, v.name, err, v.format, output)
	}
}

// change ends a daemon in the way of an operator, and starts a version in its place. It
// returns when every daemon has granted locks again.
func (u *upgrade) change(ctx context.Context, i int, v version) {
	u.t.Helper()
	u.restart(ctx, i, "the daemon becomes "+v.name, func() {
		u.start(i, v)
		u.stand.daemons[i].awaitVotesOf(len(u.stand.masters) - u.empty)
	})
	u.serve()
}

// restart is a fault of a daemon that drains; again starts it, and returns when it serves.
func (u *upgrade) restart(ctx context.Context, i int, name string, again func()) {
	f := fault{name: name, scope: onDaemon, inject: endDaemon, heal: func(*victim) { again() }}
	u.nemesis.happen(ctx, f, &victim{stand: u.stand, scope: onDaemon, daemon: i}, 0)
}

func (u *upgrade) start(i int, v version) {
	d := u.stand.daemons[i]
	d.Replace(v.binary, environment(append([]string{"GOGC=25"}, v.env...)...), slices.Concat(d.words, v.words)...)
	d.Restart()
}

// startEmpty starts a master without its memory. The function that it returns waits until
// the master votes again.
func (u *upgrade) startEmpty(ctx context.Context, master int) (aged func()) {
	u.empty++
	f := fault{name: "a master restarted empty at once", scope: onMemory, inject: func(v *victim) {
		from := u.answers.now()
		startEmpty(v)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.emptied = append(u.emptied, period{from, u.answers.now()})
	}}
	var ages sync.WaitGroup
	ages.Go(func() { u.nemesis.happen(ctx, f, &victim{stand: u.stand, scope: onMemory, master: master}, 0) })
	return func() {
		ages.Wait()
		u.empty--
		for _, d := range u.stand.daemons {
			d.awaitVotes()
		}
	}
}

// serve waits until every daemon has granted some more locks.
func (u *upgrade) serve(except ...int) {
	u.t.Helper()
	granted := func(i int) int64 { return number(u.stand.daemons[i].info("locks", "locks_acquired")) }
	var before []int64
	for i := range u.stand.daemons {
		before = append(before, granted(i))
	}
	for i := range u.stand.daemons {
		if !slices.Contains(except, i) && !eventually(func() bool { return granted(i) >= before[i]+upgradeGrants }) {
			u.t.Errorf("daemon %d has not granted %d locks within %v; it had granted %d, and now %d", i, upgradeGrants, waitTimeout, before[i], granted(i))
		}
	}
}

// refused is the run of two formats: a new daemon beside old ones is refused by every
// master, and does no harm.
func (u *upgrade) refused(ctx context.Context) {
	text, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		u.t.Fatal(err)
	}
	line := changeOfFormat(string(text), u.next.format)
	if line == "" {
		u.t.Errorf("formatVersion was %s and is %s: CHANGELOG.md needs a line with the words format and %s, and what operators do", u.old.format, u.next.format, u.next.format)
	}
	output, err := u.stand.subcommand(checkWord, u.next.binary).CombinedOutput()
	if err == nil || !strings.Contains(string(output), noDifference) {
		u.t.Errorf("redlockd %s of the new version: %v, want an error with %q\n%s", checkWord, err, noDifference, output)
	}
	u.restart(ctx, 0, "the daemon becomes new, and old again", func() {
		d := u.stand.daemons[0]
		u.start(0, u.next)
		if !eventually(func() bool {
			reply, _ := d.ask("INFO", "masters")
			masters, _ := reply.(string)
			return strings.Count(masters, ",state=refused,") == len(u.stand.masters)
		}) {
			reply, err := d.ask("INFO", "masters")
			u.t.Errorf("formatVersion was %s and is %s: want every master to refuse the new daemon: %v, %v", u.old.format, u.next.format, reply, err)
		}
		u.serve(0)
		u.start(0, u.old)
		d.awaitVotes()
	})
	u.serve()
	u.t.Logf("refused by design: the format on the masters was %s and is %s; CHANGELOG.md: %s", u.old.format, u.next.format, line)
}

// finish is the end of the run: all clients are served, all checks pass, nothing is left.
func (u *upgrade) finish() {
	u.t.Helper()
	u.nemesis.allVote()
	u.probe()
	u.verdict()
	u.judge()
	if len(u.t.sentences()) > 0 {
		return // what is left may stay for long
	}
	u.stand.awaitEmpty()
	u.stand.awaitIdle()
}

// judge checks the failures of the clients.
func (u *upgrade) judge() {
	u.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	count := map[string]int{}
	type victims struct {
		restart *strike
		client  int
	}
	lost := map[victims]int{}
	for _, f := range u.failures {
		restart, why := u.explain(f)
		if why == "" {
			u.t.Errorf("nothing explains what client %d received from daemon %d: %v [%v, %v]: %v", f.client, f.daemon, f.words, f.sent, f.at, f.err)
			continue
		}
		count[why]++
		if restart != nil && f.dialled < restart.from {
			lost[victims{restart, f.client}]++
		}
	}
	most := 0
	for one, n := range lost {
		if most = max(most, n); n > commandsLost {
			u.t.Errorf("client %d lost %d commands when daemon %d was restarted, want %d at most", one.client, n, one.restart.victim.daemon, commandsLost)
		}
	}
	u.t.Logf("a connection lost %d commands at most when its daemon was restarted; without an answer were:", most)
	for _, why := range slices.Sorted(maps.Keys(count)) {
		u.t.Logf("%6d × %s", count[why], why)
	}
}

// explain names what explains a failure: the restart of its daemon, of a master at this
// very time, contention, or the machine; "" if nothing does. Only a restart ends
// connections. It explains the end of one that existed then, and other errors while it lasts.
func (u *upgrade) explain(f failure) (restart *strike, why string) {
	reply := faulty.ReplyError("")
	isReply := errors.As(f.err, &reply)
	from, kind := f.dialled, fmt.Sprintf("%v without an answer", f.words[0])
	if isReply {
		from = f.sent
		kind, _, _ = strings.Cut(string(reply), " ")
	}
	restart = u.nemesis.restartOf(f.daemon, from, f.at)
	late := kind == "EXPIRED" || strings.Contains(string(reply), timeOver) || strings.Contains(string(reply), notAnswered)
	switch {
	case restart != nil:
		return restart, kind + " from a daemon that was restarted"
	case late && f.at-f.sent > shortTime:
		return nil, kind + " of a lease or a wait that was over before enough masters answered"
	case strings.Contains(string(reply), sameFlush):
		return nil, kind + " of two locks in one flush"
	case strings.Contains(string(reply), "the lock changed each time"): // an addition to a lease, on a hot key
		return nil, kind + " of a lock that others changed meanwhile"
	case strings.Contains(string(reply), forgotten) && !slices.Contains(newRequests, f.words[0]):
		return nil, kind + " of a lock that a master has forgotten"
	case isReply && slices.ContainsFunc(u.emptied, func(p period) bool { return f.sent <= p.to && f.at >= p.from }):
		return nil, kind + " while a master was restarted"
	case u.stood(f) > upgradeTimeout/2:
		return nil, kind + " on a machine that stood still"
	}
	return nil, ""
}

// stood is for how long the daemon of a command, or a master, was kept from running.
func (u *upgrade) stood(f failure) time.Duration {
	longest := u.nemesis.stood(f.daemon, f.sent, f.at)
	for i := range u.stand.masters {
		longest = max(longest, u.nemesis.stood(watchedMaster(i), f.sent, f.at))
	}
	return longest
}

// restartOf returns a fault of a daemon between two instants; nil if there was none.
func (n *nemesis) restartOf(daemon int, from, to time.Duration) *strike {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.all, func(one *strike) bool {
		return one.victim.scope == onDaemon && one.victim.daemon == daemon && one.from <= to && one.to >= from
	})
	if i < 0 {
		return nil
	}
	return n.all[i]
}

// The run finds what there is to find: a new version that does not share its keys with the
// old one.
func TestUpgrade_CatchesADaemonThatDoesNotShareItsKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("processes under faults are evidence: make test-long")
	}
	t.Parallel()
	old := thisVersion(t)
	apart := old
	apart.name, apart.words = "apart", []string{"--group", "apart", "--key-prefix", "apart:"} // of the same group it would be refused
	u := startUpgrade(&ledger{TB: t}, old, apart, 3, []trade{locksTrade()})
	u.stand.bootstrap(apart.words...)
	const rounds = 300 // of a second; one or two suffice on a quiet machine
	var found *checker.Violation
	u.during(func(ctx context.Context) {
		u.change(ctx, 0, apart)
		for i := 0; i < rounds && !errors.As(checker.CheckExclusion(u.record.History()), &found); i++ {
			pause(ctx, time.Second)
		}
	})
	if found == nil {
		t.Errorf("a daemon that does not share its keys was never caught in %d rounds", rounds)
	}
}

// An error that a client receives from a daemon that was not restarted is found.
func TestUpgrade_FailuresNeedARestartOfTheirOwnDaemon(t *testing.T) {
	const s = time.Second
	u := &upgrade{run: &run{stand: &stand{}, nemesis: &nemesis{all: []*strike{{victim: &victim{scope: onDaemon, daemon: 1}, from: 10 * s, to: 12 * s}}}}, emptied: []period{{30 * s, 31 * s}}}
	closed, noQuorum, over := errors.New("EOF"), faulty.ReplyError("NOQUORUM 2 of 5"), faulty.ReplyError("NOQUORUM 2 of 5: "+timeOver)
	quarantined, flush, expired := faulty.ReplyError("NOQUORUM a "+forgotten+")"), faulty.ReplyError("NOQUORUM a failing ("+sameFlush+")"), faulty.ReplyError("EXPIRED late")
	for _, c := range []struct {
		text              string
		daemon            int
		dialled, sent, at time.Duration
		err               error
		word              string
		explained         bool
	}{
		{"the end of a connection of the daemon", 1, 1 * s, 11 * s, 11 * s, closed, "DLOCK", true},
		{"the end that is found later", 1, 1 * s, 20 * s, 20 * s, closed, "DLOCK", true},
		{"a connection of another daemon", 0, 1 * s, 11 * s, 11 * s, closed, "DLOCK", false},
		{"a connection that began later", 1, 13 * s, 20 * s, 20 * s, closed, "DLOCK", false},
		{"a connection that ended before", 1, 1 * s, 9 * s, 9 * s, closed, "DLOCK", false},
		{"an error while it restarts", 1, 11 * s, 11 * s, 11 * s, noQuorum, "DLOCK", true},
		{"an error after that", 1, 11 * s, 20 * s, 20 * s, noQuorum, "DLOCK", false},
		{"an error of another daemon", 2, 11 * s, 11 * s, 11 * s, noQuorum, "DLOCK", false},
		{"an error while a master is restarted", 0, 1 * s, 29 * s, 30 * s, noQuorum, "DLOCK", true},
		{"a connection that ends then", 0, 1 * s, 29 * s, 30 * s, closed, "DLOCK", false},
		{"an error before that", 0, 1 * s, 29 * s, 29 * s, noQuorum, "DLOCK", false},
		{"an error after that", 0, 1 * s, 32 * s, 32 * s, noQuorum, "DLOCK", false},
		{"two locks in one flush", 0, 1 * s, 2 * s, 2 * s, flush, "DLOCK", true},
		{"a release of what a master has forgotten", 0, 1 * s, 2 * s, 2 * s, quarantined, "DUNLOCK", true},
		{"a lock beside a master that has forgotten", 0, 1 * s, 2 * s, 2 * s, quarantined, "DLOCK", false},
		{"a late grant", 0, 1 * s, 2 * s, 3 * s, expired, "DLOCK", true},
		{"a command that was sent late", 0, 1 * s, 2 * s, 3 * s, over, "DLOCK", true},
		{"a command that was not sent late", 0, 1 * s, 2 * s, 2 * s, over, "DLOCK", false},
		{"a grant that is not late", 0, 1 * s, 2 * s, 2 * s, expired, "DLOCK", false},
	} {
		_, why := u.explain(failure{command{daemon: c.daemon, dialled: c.dialled, sent: c.sent, words: []any{c.word}}, c.at, c.err})
		if (why != "") != c.explained {
			t.Errorf("%s: explained by %q, want %v", c.text, why, c.explained)
		}
	}
}

// The steps that the run executes are those of the runbook.
func TestUpgrade_ExecutesTheStepsOfTheRunbook(t *testing.T) {
	text, err := os.ReadFile(root + "/configs/MEMBERSHIP.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "## Restarting and upgrading daemons\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	at := 0
	for _, step := range []string{"`redlockd " + checkWord, noDifference, "SIGTERM", votesField} {
		n := strings.Index(chapter[at:], step)
		if n < 0 {
			t.Fatalf("the chapter on upgrades lacks %q behind the step before:\n%s", step, chapter)
		}
		at += n
	}
}
