package setup

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

var onDisk = []string{"--appendonly", "yes", "--appendfsync", "always"}

func check(t *testing.T, o pool.Options) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Check(t.Context(), o, false, &out)
	return out.String(), err
}

// wantReason expects a refusal that says so.
func wantReason(t *testing.T, o pool.Options, says string) {
	t.Helper()
	out, err := check(t, o)
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, says) {
		t.Errorf("%v\n%swant %q", err, out, says)
	}
}

func TestCheck_FindsFitMastersFit(t *testing.T) {
	servers := faulty.StartGroup(t, 3, onDisk...)
	o := optionsOf(servers...)
	out, err := check(t, o)
	if err != nil || strings.Count(out, "yes") != 6 || strings.Count(out, " new ") != 3 || strings.Contains(out, "warning") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, s := range servers {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("the check left %q", keys)
		}
	}
	seen(t, o, 0, "quarantined")
	if out, err := check(t, o); err != nil || !strings.Contains(out, "votes") {
		t.Errorf("%v\n%s", err, out)
	}
	o.MaxTTL = time.Minute
	wantReason(t, o, "serves daemons with other settings: max-ttl is 60000 here and 200 there")
}

func TestCheck_WarnsOfMastersThatForget(t *testing.T) {
	out, err := check(t, optionsOf(faulty.StartGroup(t, 3)...))
	if err != nil || strings.Count(out, "warning: appendonly no") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck_WarnsOfAKeyOfOthersWhereRecordsBelong(t *testing.T) {
	servers := faulty.StartGroup(t, 3, onDisk...)
	if _, err := servers[1].Do("SET", "redlockd:acked", "mine"); err != nil {
		t.Fatal(err)
	}
	out, err := check(t, optionsOf(servers...))
	if err != nil || strings.Count(out, "warning") != 1 || !strings.Contains(out, "b: warning: database 0: redlockd:acked holds something that redlockd did not write") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck_SaysWhatIsWrongWithAMaster(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	a, b, c := servers[0], servers[1], servers[2]
	do := func(args ...any) {
		t.Helper()
		if _, err := c.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	o := optionsOf(servers...)
	do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	wantReason(t, o, "c: maxmemory-policy is allkeys-lru")
	do("CONFIG", "SET", "maxmemory-policy", "noeviction")

	twice := optionsOf(a, b, b)
	wantReason(t, twice, "c: is the same server as master b")
	many := o
	many.Databases = 17
	wantReason(t, many, "has no database 16")

	host, port, _ := strings.Cut(a.Addr(), ":")
	do("REPLICAOF", host, port)
	wantReason(t, o, "c: is a slave")
	do("REPLICAOF", "NO", "ONE")
	wantReason(t, o, "c: is a promoted replica")
	c.Kill()
	wantReason(t, o, "c: cannot be reached")
}

// Two entries of the list with each other's address are no reason to empty the servers.
func TestCheck_NamesTheCauseOfAnotherMastersMemory(t *testing.T) {
	_, o := bootstrapped(t, 3)
	o.Masters = slices.Clone(o.Masters)
	o.Masters[0].Address, o.Masters[1].Address = o.Masters[1].Address, o.Masters[0].Address
	wantReason(t, o, "a: serves daemons with other settings: master is a here and b there; the name has the address of another master here, or")
}

// A database that no client uses may stay invalidated; the vote in another one counts for the cell.
func TestCheck_ShowsTheVoteOfAMasterBesideAnInvalidatedDatabase(t *testing.T) {
	servers, o := bootstrapped(t, 3)
	if _, err := servers[2].Do("EVAL", "redis.call('select', 1) redis.call('del', KEYS[1]) return redis.call('zadd', KEYS[1], 1, 'gone')", 1, "redlockd:seal"); err != nil {
		t.Fatal(err)
	}
	if out, err := check(t, o); err != nil || strings.Contains(out, "invalidated") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck_FindsMastersThatRefuseWrites(t *testing.T) {
	servers := faulty.StartGroup(t, 3, onDisk...)
	for _, set := range []struct {
		server *faulty.Server
		name   string
		value  any
	}{{servers[0], "maxmemory", 1}, {servers[1], "min-replicas-to-write", 1}} {
		if _, err := set.server.Do("CONFIG", "SET", set.name, set.value); err != nil {
			t.Fatal(err)
		}
	}
	o := optionsOf(servers...)
	wantReason(t, o, "a: refuses writes, so its votes do not count: OOM ")
	wantReason(t, o, "b: refuses writes, so its votes do not count: NOREPLICAS ")
	if keys := servers[2].Keys(); len(keys) > 0 {
		t.Errorf("the check left %q", keys)
	}
}

func TestCheck_FindsAClockThatIsWrong(t *testing.T) {
	servers := faulty.WithClock().StartGroup(t, 3)
	servers[1].Step(2 * time.Second)
	out, err := check(t, optionsOf(servers...))
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, "b: its clock is +") || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("%v\n%s", err, out)
	}
}

// masterUser makes the user of the file on every server, and returns its rules.
func masterUser(t *testing.T, servers []*faulty.Server) (words []string) {
	t.Helper()
	text, err := os.ReadFile("../../configs/master-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	words = strings.Fields(string(text))[1:]
	if isOld(servers[0]) { // as ACCESS.md says
		words = slices.DeleteFunc(words, func(word string) bool { return word == "+pexpiretime" })
	}
	for _, s := range servers {
		allow(t, s, words...)
	}
	return words
}

// isOld tells of Redis 6.2, where subcommands cannot be taken away.
func isOld(s *faulty.Server) bool {
	_, err := s.Do("PEXPIRETIME", "none")
	return err != nil
}

func allow(t *testing.T, s *faulty.Server, words ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER"}
	for _, word := range words {
		args = append(args, word)
	}
	if _, err := s.Do(args...); err != nil {
		t.Fatal(err)
	}
}

func TestRights_AreTheCommandsOfTheFile(t *testing.T) {
	text, err := os.ReadFile("../../configs/master-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	var ours, allowed []string
	for _, r := range slices.Concat(connectionRules, scriptRules) {
		ours = append(ours, r.name)
		if words := strings.Fields(strings.ToLower(r.call)); len(words) > 0 && strings.Join(words[:strings.Count(r.name, "|")+1], "|") != r.name {
			t.Errorf("%s is asked for with %q", r.name, r.call)
		}
	}
	for _, word := range strings.Fields(string(text)) {
		if name, ok := strings.CutPrefix(word, "+"); ok {
			allowed = append(allowed, name)
		}
	}
	slices.Sort(ours)
	slices.Sort(allowed)
	if !slices.Equal(ours, allowed) {
		t.Errorf("checked\n%s\nallowed by the file\n%s", ours, allowed)
	}
}

// The user of the file may do everything; one right less is missed, and the
// question leaves nothing behind.
func TestCheck_NamesTheCommandsThatTheUserMayNotSay(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	words := masterUser(t, servers)
	o := optionsOf(servers...)
	for i := range o.Masters {
		o.Masters[i].Username, o.Masters[i].Password = "redlockd", "change-me"
	}
	if out, err := check(t, o); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, word := range words {
		name, ok := strings.CutPrefix(word, "+")
		if !ok || isOld(servers[1]) && strings.Contains(name, "|") {
			continue
		}
		allow(t, servers[1], "redlockd", "-"+name)
		switch out, err := check(t, o); {
		case name == "auth" || name == "hello": // may be said whatever the rules are, or there is no connection
			if err != nil && !strings.Contains(out, "b: cannot be reached") {
				t.Errorf("without %s: %v\n%s", name, err, out)
			}
		case name == "config|get":
			if err != nil || !strings.Contains(out, "b: warning: CONFIG GET refused") {
				t.Errorf("without %s: %v\n%s", name, err, out)
			}
		case name == "client|list":
			if err != nil || !strings.Contains(out, "b: warning: does not list its connections") {
				t.Errorf("without %s: %v\n%s", name, err, out)
			}
		case !errors.Is(err, ErrUnfit) || !strings.Contains(out, "b: its user may not "+name+":"):
			t.Errorf("without %s: %v\n%s", name, err, out)
		}
		allow(t, servers[1], "redlockd", "+"+name)
	}
	for _, s := range servers {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("the check left %q", keys)
		}
	}
	allow(t, servers[2], "redlockd", "-zrangebyscore", "-lpush", "resetchannels")
	wantReason(t, o, "c: its user may not lpush, publish, subscribe, zrangebyscore: ")
}

// A server may have renamed commands, which no rule of its users shows.
func TestCheck_NamesTheCommandsThatAServerHasRenamed(t *testing.T) {
	o := optionsOf(faulty.Start(t), faulty.Start(t, "--rename-command", "EVALSHA", "", "--rename-command", "ZADD", "add"), faulty.Start(t))
	wantReason(t, o, "b: its user may not evalsha, zadd: allow the commands of configs/master-acl.txt, and rename none")
}

// With a key prefix the user has two patterns of keys.
func TestCheck_NamesTheKeyThatTheUserMayNotUse(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	masterUser(t, servers)
	o := optionsOf(servers...)
	o.KeyPrefix = "locks:"
	for i, s := range servers {
		o.Masters[i].Username, o.Masters[i].Password = "redlockd", "change-me"
		allow(t, s, "redlockd", "resetkeys", "~locks:*", "~redlockd:configuration")
	}
	if out, err := check(t, o); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	allow(t, servers[1], "redlockd", "resetkeys", "~locks:*")
	wantReason(t, o, "b: its user may not use the key redlockd:configuration, which stands without --key-prefix: allow ~redlockd:configuration, too\n")
	if !isOld(servers[2]) { // permissions for reading alone
		allow(t, servers[1], "redlockd", "~redlockd:configuration")
		allow(t, servers[2], "redlockd", "resetkeys", "~locks:*", "%R~redlockd:configuration")
		wantReason(t, o, "c: its user may not use the key redlockd:configuration")
	}
}

// brief is a longest lease that a test can wait for.
const brief = 200 * time.Millisecond

// unhurried is a master timeout that a busy machine does not reach.
const unhurried = 10 * time.Second

// optionsOf real masters, named a, b, c …
func optionsOf(servers ...*faulty.Server) pool.Options {
	o := pool.Options{MaxTTL: brief, MaxKeep: brief, MasterTimeout: unhurried, Databases: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for i, s := range servers {
		o.Masters = append(o.Masters, wire.Master{Name: string(rune('a' + i)), Network: "tcp", Address: s.Addr()})
	}
	return o
}

// seen starts a daemon's lanes and waits until a master's detail or state says so.
func seen(t *testing.T, o pool.Options, lane int, says string) {
	t.Helper()
	seenIn(t, o, 0, lane, says)
}

// seenIn is seen in another database.
func seenIn(t *testing.T, o pool.Options, db, lane int, says string) {
	t.Helper()
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Start()
	g := p.Group(db)
	var last pool.Status
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = g.Statuses()[lane]; strings.Contains(last.State+" "+last.Detail, says) {
			return
		}
	}
	t.Errorf("master %s is %s (%s), want %s", last.Name, last.State, last.Detail, says)
}

// A daemon would begin with none of them: check must not call them fit.
func TestCheck_NamesAnOlderFileWithWhichNoDaemonBegins(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	restart := func(some ...*faulty.Server) {
		for _, s := range some {
			if _, err := s.Do("SAVE"); err != nil {
				t.Fatal(err)
			}
			s.Restart()
		}
	}
	restart(servers[0])
	if out, err := check(t, o); err != nil || !strings.Contains(out, "older file") {
		t.Errorf("a daemon begins with the only one: %v\n%s", err, out)
	}
	restart(servers[1])
	if out, err := check(t, o); err == nil || !strings.Contains(out, "b: has come back with what may be an older file, and only 1 of 3 masters answer with the settings of the group, 2 are needed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A daemon follows a change, so its file is no fault of the masters.
func TestCheck_AListThatDiffersIsNamedWithTheOneInUse(t *testing.T) {
	t.Parallel()
	servers, first := bootstrapped(t, 3)
	d, e := faulty.Start(t), faulty.Start(t)
	if out, err := changeMasters(t, first, "c", masterAt("d", d)); err != nil {
		t.Fatal(out, err)
	}
	now := renamed(optionsOf(servers[0], servers[1], d), "a", "b", "d")
	differs := "your list differs; daemons use " + now.Configuration(0).Names() + " since epoch 2: write that list into the files of all daemons. To change the list: redlockd masters\n"
	for what, o := range map[string]pool.Options{"the former list": first, "a list to be": renamed(optionsOf(servers[0], servers[1], d, e), "a", "b", "d", "e")} {
		if out, err := check(t, o); err != nil || !strings.HasPrefix(out, differs) || strings.Contains(out, "reconfigure") || strings.Count(out, " yes\n") != 4 {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	if out, _ := check(t, first); !strings.Contains(out, "not in use") {
		t.Errorf("c, which has left, is\n%s", out)
	}
	if out, err := check(t, now); err != nil || strings.Contains(out, "differs") {
		t.Errorf("%v\n%s", err, out)
	}
	e.Kill()
	wantReason(t, renamed(optionsOf(servers[0], servers[1], e), "a", "b", "e"), "e: cannot be reached")
	d.Kill()
	wantReason(t, first, "d: cannot be reached")
}

func TestCheck_NamesAChangeThatIsUnfinished(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 3)
	next := renamed(optionsOf(servers[0], servers[1], faulty.Start(t)), "a", "b", "d")
	interruptedChange(t, o, next)
	for _, list := range []pool.Options{o, next} {
		if out, err := check(t, list); err == nil || strings.Count(out, " NO\n") != 1 || !strings.Contains(out, "\na: has epoch 2 by a change that is unfinished\n") || !strings.HasPrefix(out, "a change to epoch 2 is unfinished, and nothing may be granted until it is: redlockd reconfigure --masters a="+servers[0].Addr()) {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// A new group of an even number of masters is a mistake, and a step of a change is none.
func TestCheck_AndBootstrapRefuseANewGroupOfAnEvenNumber(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 4, onDisk...)
	const reason = "4 masters survive the loss of 1, as 3 do, and need one answer more for every decision: a new group has an odd number; use 3 or 5"
	wantReason(t, optionsOf(servers...), reason)
	if err := Bootstrap(t.Context(), optionsOf(servers...), BootstrapTerms{}, io.Discard); err == nil || err.Error() != reason {
		t.Error(err)
	}
	for i, s := range servers {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("master %d has %q", i, keys)
		}
	}
	o := optionsOf(servers[:3]...)
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out, err := changeMasters(t, o, "", masterAt("d", servers[3])); err != nil {
		t.Fatal(out, err)
	}
	if out, err := check(t, optionsOf(servers...)); err != nil {
		t.Error(out, err)
	}
	if err := Bootstrap(t.Context(), optionsOf(servers...), BootstrapTerms{}, io.Discard); err == nil || !strings.Contains(err.Error(), "has an identity already") {
		t.Error(err)
	}
}

func TestCheck_TellsHowToGiveALogin(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3, "--requirepass", "secret")
	o := optionsOf(servers...)
	wantReason(t, o, "(give the login in its entry: a=redis://USER:PASSWORD@"+servers[0].Addr()+", without USER where it has requirepass; --masters-file takes")
	for i := range o.Masters {
		o.Masters[i].Password = "wrong"
	}
	wantReason(t, o, "b=redis://USER:PASSWORD@"+servers[1].Addr())
	for i := range o.Masters {
		o.Masters[i].Password = "secret"
	}
	if out, err := check(t, o); err != nil {
		t.Error(out, err)
	}
}
