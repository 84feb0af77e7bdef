package daemon

// Tests of several groups of masters behind one daemon, on real masters.

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool/faulty"
	"redlockd/redlock/slots"
)

// twoGroups are three durable masters each.
func twoGroups(t *testing.T) [2][]*faulty.Server {
	t.Helper()
	durable := []string{"--appendonly", "yes", "--appendfsync", "always"}
	return [2][]*faulty.Server{faulty.StartGroup(t, 3, durable...), faulty.StartGroup(t, 3, durable...)}
}

// mapFile is the path of a configuration with these groups, the first of which has the slots up to
// a last one; with 16383 the second one has none.
func mapFile(t *testing.T, groups [2][]*faulty.Server, last int) string {
	t.Helper()
	text := "databases = 2\nmax-ttl = \"5s\"\nmax-keep = \"5s\"\n"
	for i, ranges := range []string{fmt.Sprintf("0-%d", last), fmt.Sprintf("%d-16383", last+1)} {
		if ranges == "16384-16383" {
			ranges = "none"
		}
		var masters []string
		for n, s := range groups[i] {
			masters = append(masters, fmt.Sprintf("%q", fmt.Sprintf("g%d-%s=%s", i+1, masterName(n), s.Addr())))
		}
		text += fmt.Sprintf("[[group]]\nname = \"g%d\"\nmasters = [%s]\nslots = %q\n", i+1, strings.Join(masters, ", "), ranges)
	}
	path := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func bootstrapFile(t *testing.T, path string) {
	t.Helper()
	if err := run(t.Context(), []string{"bootstrap", "--config", path}, []string{unhurried}, nil, io.Discard, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// keyOf is the n-th name with a slot of a group, of two with half of the slots each.
func keyOf(group, n int) string {
	for i := 0; ; i++ {
		name := fmt.Sprint("key-", i)
		if slots.Of(name)/(slots.Count/2) != group {
			continue
		}
		if n--; n < 0 {
			return name
		}
	}
}

// granted reads a grant.
func (c *client) granted(t *testing.T, format string, args ...any) (token string, fence int64) {
	t.Helper()
	if head := c.ask(t, format, args...); head != "*3" {
		t.Fatalf(format+": %s", append(args, head)...)
	}
	reply := c.lines(t, 4)
	fence, err := strconv.ParseInt(strings.TrimPrefix(reply[3], ":"), 10, 64)
	if err != nil {
		t.Fatalf("fence %q", reply[3])
	}
	return reply[1], fence
}

func TestGroups_EachServesItsSlotsAndFailsAlone(t *testing.T) {
	groups := twoGroups(t)
	path := mapFile(t, groups, 8191)
	bootstrapFile(t, path)
	o := operate(t, "--config", path)
	if body := o.await(t, "/readyz", http.StatusOK, "g1: 3 of 3", "g2: 3 of 3"); body != "group g1: 3 of 3 masters may vote, 2 needed\ngroup g2: 3 of 3 masters may vote, 2 needed\n" {
		t.Errorf("/readyz: %q", body)
	}
	c := dial(t, o.port)
	one, two := keyOf(0, 0), keyOf(1, 0)
	for group, key := range []string{one, two} {
		token, _ := c.granted(t, "DLOCK %s 5000", key)
		for i, servers := range groups {
			n := 0
			for _, have := range held(t, servers, key) {
				if have == token {
					n++
				}
			}
			if (i == group) != (n >= 2) || i != group && n > 0 {
				t.Errorf("%d masters of group %d hold %s of group %d", n, i, key, group)
			}
		}
		c.types(t, "DUNLOCK "+key+" "+token, ":1", "DNEXTID "+key, ":1")
	}
	_, last := c.granted(t, "DLOCK %s 5000 TOKEN first-token", one)
	c.types(t, "DMLOCK 5000 2 "+two+" "+one, "$-1", "DUNLOCK "+one+" first-token", ":1")
	token, fence := c.granted(t, "DMLOCK 5000 2 %s %s WAIT 5000", two, one)
	if fence <= last {
		t.Errorf("the fence %d of both is not above %d", fence, last)
	}
	if reply := c.ask(t, "DMEXTEND %s 5000 2 %s %s", token, one, two); !strings.HasPrefix(reply, ":") {
		t.Errorf("DMEXTEND: %s", reply)
	}
	c.types(t, "DMUNLOCK "+token+" 2 "+one+" "+two, ":2")
	holder := dial(t, o.port)
	holder.granted(t, "DMLOCK 5000 2 %s %s HOLD", two, one)
	c.types(t, "DLOCK "+one+" 5000", "$-1", "DLOCK "+two+" 5000", "$-1")
	holder.Close()
	for _, key := range []string{one, two} {
		token, _ := c.granted(t, "DLOCK %s 5000 WAIT 60000", key)
		c.types(t, "DUNLOCK "+key+" "+token, ":1")
	}
	if reply := c.ask(t, "DMLOCK 5000 2 %s %s SHARED", one, two); !strings.Contains(reply, "give them one hash tag, such as {order:7}:a") {
		t.Errorf("DMLOCK SHARED: %s", reply)
	}
	c.types(t, "DMLOCK 5000 2 {x}"+one+" {x}"+two, "*3")
	c.lines(t, 4)
	if info := c.info(t, "masters"); info["group1"] != "name=g2,masters=3,voting=3,needed=2,epoch=1" || !strings.HasPrefix(info["master5"], "group=g2,name=g2-c,") {
		t.Errorf("INFO: %q", info)
	}
	if _, metrics := o.get(t, "/metrics", ""); !strings.Contains(metrics, `redlockd_masters_voting{database="0",group="g2"} 3`) {
		t.Error("/metrics has no group g2")
	}
	if _, state := o.get(t, "/state", ""); !strings.Contains(state, `"group":"g2"`) || !strings.Contains(state, "All 6 masters vote.") {
		t.Errorf("/state: %s", state)
	}
	groups[1][0].Kill()
	groups[1][2].Kill()
	o.await(t, "/readyz?group=g2", http.StatusServiceUnavailable)
	if reply := c.ask(t, "DLOCK %s 5000", two); !strings.HasPrefix(reply, "-NOQUORUM") || strings.Contains(reply, "g1-") {
		t.Errorf("DLOCK: %s", reply)
	}
	token, _ = c.granted(t, "DLOCK %s 5000", one)
	c.types(t, "DUNLOCK "+one+" "+token, ":1")
	if reply := c.ask(t, "DMLOCK 5000 2 %s %s", one, two); !strings.HasPrefix(reply, "-NOQUORUM") {
		t.Errorf("DMLOCK: %s", reply)
	}
	token, _ = c.granted(t, "DLOCK %s 5000 WAIT 5000", one)
	c.types(t, "DUNLOCK "+one+" "+token, ":1")
	o.pageShows(t, "/state", "", "Group g2: No lock can be granted")
	if status, body := o.get(t, "/readyz?group=g3", ""); status != http.StatusNotFound {
		t.Errorf("an unknown group: %d, %s", status, body)
	}
}

func TestGroups_AnotherMapIsRefused(t *testing.T) {
	groups := twoGroups(t)
	path, other := mapFile(t, groups, 8191), mapFile(t, groups, 9999)
	bootstrapFile(t, path)
	c := dial(t, serveHere(t, nil, "--config", other))
	c.awaitMaster(t, 0, "refused", "slots is 0-9999 here and 0-8191 there")
	c.awaitMaster(t, 5, "refused", "slots is 10000-16383 here and 8192-16383 there")
	if reply := c.ask(t, "DLOCK a 5000"); !strings.HasPrefix(reply, "-NOQUORUM 0 of 3 masters answered") || !strings.Contains(reply, "here and") {
		t.Errorf("DLOCK: %s", reply)
	}
	single := []string{"--databases", "2", "--max-ttl", "5s", "--max-keep", "5s", "--group", "g1"}
	args := append(single, "--masters", strings.ReplaceAll(listOf(groups[0]), ",", ",g1-"))
	args[len(args)-1] = "g1-" + args[len(args)-1]
	alone := dial(t, serveHere(t, nil, args...))
	alone.awaitMaster(t, 0, "refused", "slots is all here and 0-8191 there")

	third := faulty.StartGroup(t, 3)
	blank := mapFile(t, [2][]*faulty.Server{groups[0], third}, 9999)
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"check", "--config", path}, cli.ExitOK, "group g2, slots 8192-16383"},
		{[]string{"check", "--config", path, "--group", "g2"}, cli.ExitOK, "g2-a"},
		{[]string{"check", "--config", other}, cli.ExitRuntime, "slots is 0-9999 here and 0-8191 there"},
		{[]string{"reconfigure", "--config", other}, cli.ExitRuntime, "group g1 has the slots 0-9999 here and 0-8191 on master g1-a; nothing was changed"},
		{[]string{"masters", "replace", "g2-a", "g2-d=" + third[0].Addr(), "--config", other}, cli.ExitRuntime, "slots=10000-16383 here and slots=8192-16383 there"},
		{[]string{"masters", "add", "g2-d=" + third[0].Addr(), "--config", path}, cli.ExitUsage, "name it with --group"},
		{[]string{"masters", "add", "g1-d=" + groups[1][0].Addr(), "--config", path, "--group", "g1"}, cli.ExitUsage, "in which no other has its name or address"},
		{[]string{"quarantine", "g3-a", "--config", path}, cli.ExitUsage, "g3-a: is in no group, or not all of them are in one; group g1 has g1-a="},
		{[]string{"bootstrap", "--config", blank, "--group", "g2"}, cli.ExitRuntime, "no group was bootstrapped: two maps"},
		{[]string{"--config", path, "--group", "g1", "--listen", "127.0.0.1:0"}, cli.ExitUsage, "cannot be chosen by a daemon"},
		{[]string{"--config", blank, "--bootstrap", "--listen", "127.0.0.1:0"}, cli.ExitRuntime, "no group was bootstrapped: two maps"},
	} {
		if code, output := typed(t, nil, step.args...); code != step.code || !strings.Contains(output, step.says) {
			t.Errorf("%q: code %d, want %d and %q:\n%s", step.args, code, step.code, step.says, output)
		}
	}
	for i, s := range third {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("master %d of the blank group has %q", i, keys)
		}
	}
	groups[0][0].Kill()
	groups[0][1].Kill()
	path = mapFile(t, [2][]*faulty.Server{groups[0], third}, 8191)
	if code, output := typed(t, nil, "bootstrap", "--config", path, "--group", "g2"); code != cli.ExitRuntime || !strings.Contains(output, "only 1 masters of group g1 answer, 2 of g1-a=") {
		t.Errorf("bootstrap beside a group that is out of reach: code %d:\n%s", code, output)
	}
	dial(t, serveHere(t, nil, "--config", path, "--bootstrap")).awaitMaster(t, 0, "down")
	for i, s := range third {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("master %d of the blank group has %q", i, keys)
		}
	}
	groups[0][0].Restart()
	groups[0][1].Restart()
	path = mapFile(t, groups, 8191)
	if code, output := typed(t, nil, "quarantine", "g2-b", "--config", path); code != cli.ExitOK || strings.Contains(output, "g1") {
		t.Errorf("quarantine: code %d:\n%s", code, output)
	}
	dial(t, serveHere(t, nil, "--config", path)).awaitMaster(t, 4, "quarantined") // until it is admitted it may be an older file
	if code, output := typed(t, nil, "masters", "replace", "g2-c", "g2-d="+third[0].Addr(), "--config", path, "--wait"); code != cli.ExitOK {
		t.Fatalf("masters replace: code %d:\n%s", code, output)
	}
	for _, by := range []string{"g2-d", third[0].Addr()} { // the file is older now
		if code, output := typed(t, nil, "quarantine", by, "--config", path, "--force"); code != cli.ExitOK || !strings.HasPrefix(output, "group g2, slots 8192-16383\nepoch 2 has the masters g2-a=") || !strings.Contains(output, "master g2-d: ") {
			t.Errorf("quarantine %s with the former file: code %d:\n%s", by, code, output)
		}
	}
	if code, output := typed(t, nil, "quarantine", "g2-c", "--config", path); code != cli.ExitRuntime || !strings.Contains(output, ",g2-d="+third[0].Addr()) {
		t.Errorf("quarantine of a master that left: code %d:\n%s", code, output)
	}
	third[0].FlushAll()
	groups[1][0].Kill()
	groups[1][2].Kill()
	if code, output := typed(t, nil, "bootstrap", "--aged", "g2-d", "--config", path); code != cli.ExitOK || !strings.Contains(output, "master g2-d: began an incarnation in 2 databases") {
		t.Errorf("bootstrap --aged with the former file: code %d:\n%s", code, output)
	}
}

// groupLoad locks keys of one group until it is stopped; no two clients hold a key, and its fences rise.
type groupLoad struct {
	keys               []string
	mu                 sync.Mutex
	holder             map[string]bool
	fences             map[string]int64
	granted, undecided atomic.Int64
	frozen             atomic.Int64
}

func (l *groupLoad) run(t *testing.T, address string, seed int, stop <-chan struct{}) {
	c := dial(t, address)
	for n := seed; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		key := l.keys[n%len(l.keys)]
		switch head := c.ask(t, "DLOCK %s 5000", key); {
		case head == "$-1":
		case strings.HasPrefix(head, "-TRYLATER") && strings.Contains(head, " from group g"):
			l.frozen.Add(1)
		case strings.HasPrefix(head, "-NOQUORUM"), strings.HasPrefix(head, "-EXPIRED"):
			l.undecided.Add(1)
		case head != "*3":
			t.Errorf("DLOCK %s: %s", key, head)
			return
		default:
			reply := c.lines(t, 4)
			fence, _ := strconv.ParseInt(strings.TrimPrefix(reply[3], ":"), 10, 64)
			l.mu.Lock()
			if l.holder[key] || fence <= l.fences[key] {
				t.Errorf("%s: two holders (%v), or fence %d after %d", key, l.holder[key], fence, l.fences[key])
			}
			l.holder[key], l.fences[key] = true, fence
			l.mu.Unlock()
			l.granted.Add(1)
			l.mu.Lock()
			l.holder[key] = false
			l.mu.Unlock()
			c.ask(t, "DUNLOCK %s %s", key, reply[1])
		}
	}
}

func TestGroups_OneLosesItsQuorumUnderLoadAndTheOtherGoesOn(t *testing.T) {
	groups := twoGroups(t)
	path := mapFile(t, groups, 8191)
	bootstrapFile(t, path)
	o := operate(t, "--config", path)
	o.await(t, "/readyz", http.StatusOK)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	loads := [2]*groupLoad{}
	for i := range loads {
		loads[i] = &groupLoad{holder: map[string]bool{}, fences: map[string]int64{}}
		for n := range 4 {
			loads[i].keys = append(loads[i].keys, keyOf(i, n))
		}
		for n := range 3 {
			clients.Go(func() { loads[i].run(t, o.port, n, stop) })
		}
	}
	defer clients.Wait()
	defer close(stop)
	grows := func(what string, n *atomic.Int64) {
		t.Helper()
		before := n.Load()
		eventually(t, what, func() bool { return n.Load() > before+20 }, func() string { return fmt.Sprint(n.Load()) })
	}
	for range 2 {
		grows("group 1 grants", &loads[0].granted)
		grows("group 2 grants", &loads[1].granted)
		groups[1][0].Kill()
		groups[1][1].Kill()
		o.await(t, "/readyz?group=g2", http.StatusServiceUnavailable)
		grows("group 2 answers NOQUORUM", &loads[1].undecided)
		grows("group 1 grants without group 2", &loads[0].granted)
		o.await(t, "/readyz", http.StatusOK, "group g2: 1 of 3 masters may vote")
		groups[1][0].Restart()
		groups[1][1].Restart()
		o.await(t, "/readyz?group=g2", http.StatusOK)
	}
	grows("group 2 grants again", &loads[1].granted)
	if n := loads[0].undecided.Load(); n > 0 {
		t.Errorf("%d requests of group 1 were not decided", n)
	}
}

// A lock of several groups has the shortest validity of its parts, which end by the clocks of their pools.
func TestGroups_HaveOneClock(t *testing.T) {
	path := mapFile(t, twoGroups(t), 8191)
	bootstrapFile(t, path)
	config, err := configs.Load([]string{"--config", path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFleet(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if f.pools[0].Clock() != f.pools[1].Clock() {
		t.Error("two groups have two clocks")
	}
}

// nameIn is the n-th name with a slot of a range.
func nameIn(first, last, n int) string {
	for i := 0; ; i++ {
		name := fmt.Sprint("name-", i)
		if slot := slots.Of(name); slot < first || slot > last {
			continue
		}
		if n--; n < 0 {
			return name
		}
	}
}

// servedBy is the group that grants in a slot; "" while it is frozen.
func (c *client) servedBy(t *testing.T, slot int) (group string) {
	t.Helper()
	for name, line := range c.info(t, "slots") {
		var from, to, version, operations int
		fields := strings.Split(line, ",")
		if !strings.HasPrefix(name, "slots") {
			continue
		}
		if n, _ := fmt.Sscanf(fields[0], "slots=%d-%d", &from, &to); n != 2 || len(fields) < 4 {
			t.Fatalf("%s:%s", name, line)
		}
		if n, _ := fmt.Sscanf(fields[2]+" "+fields[3], "map=%d operations=%d", &version, &operations); n != 2 {
			t.Fatalf("%s:%s", name, line)
		}
		if from <= slot && slot <= to && len(fields) == 4 {
			group = strings.TrimPrefix(fields[1], "group=")
		}
	}
	return group
}

// The daemons serve all slots but those that move, those for the time of the longest lease alone. The
// slots go to the other group and back. One daemon begins with the map of before.
func TestGroups_SlotsMoveUnderLoad(t *testing.T) {
	t.Parallel()
	groups := twoGroups(t)
	path := mapFile(t, groups, 8191)
	bootstrapFile(t, path)
	daemons := []*operated{operate(t, "--config", path), operate(t, "--config", path)}
	for _, o := range daemons {
		o.await(t, "/readyz", http.StatusOK)
	}
	const first, last = 1000, 2999
	load := &groupLoad{holder: map[string]bool{}, fences: map[string]int64{}}
	for n := range 4 {
		load.keys = append(load.keys, nameIn(first, last, n), keyOf(0, n), keyOf(1, n))
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	defer clients.Wait()
	defer close(stop)
	for n := range 4 {
		clients.Go(func() { load.run(t, daemons[n%2].port, n, stop) })
	}
	c, waiter := dial(t, daemons[0].port), dial(t, daemons[1].port)
	key, queued := nameIn(first, last, 10), nameIn(first, last, 11)
	highest, lastID := int64(0), 0
	nextID := func(c *client) {
		t.Helper()
		id := 0
		eventually(t, "an id is given", func() bool {
			id, _ = strconv.Atoi(strings.TrimPrefix(c.ask(t, "DNEXTID %s", key), ":"))
			return id > 0
		}, func() string { return "" })
		if id <= lastID {
			t.Errorf("id %d after %d", id, lastID)
		}
		lastID = id
	}
	for round, to := range []string{"g2", "g1"} {
		from := []string{"g1", "g2"}[round]
		nextID(c)
		locked := time.Now()
		token, fence := c.granted(t, "DLOCK %s 5000 WAIT 60000", key)
		highest = max(highest, fence)
		moved := make(chan string, 1)
		clients.Go(func() {
			code, output := 0, ""
			for range 20 { // on a busy machine a step may fail: the same command goes on
				if code, output = typed(t, nil, "slots", "move", fmt.Sprintf("%d-%d", first, last), "--to", to, "--config", path); code == 0 {
					break
				}
				t.Log(output)
			}
			moved <- fmt.Sprint(code, " ", output)
		})
		eventually(t, "the slots are frozen", func() bool { return strings.Contains(c.info(t, "slots")["slots1"], ",to="+to) }, func() string { return fmt.Sprint(c.info(t, "slots")) })
		refusal := fmt.Sprintf("-TRYLATER the slots %d-%d move from group %s to %s; nothing was done, try again in ", first, last, from, to)
		for _, request := range []string{"DLOCK " + queued + " 5000", "DEXTEND " + key + " " + token + " 5000", "DNEXTID " + key, "SET " + queued + " value NX PX 5000", "DWORK " + key + " 1000 MAX 3"} {
			if reply := c.ask(t, "%s", request); !strings.HasPrefix(reply, refusal) {
				t.Errorf("%s: %s", request, reply)
			}
		}
		again := fmt.Sprintf("name=%s,masters=3,voting=3,needed=2,epoch=%d", from, round+2) // until then a release is undecided
		eventually(t, "the masters vote under the change", func() bool { return c.info(t, "masters")[fmt.Sprint("group", round)] == again }, func() string { return fmt.Sprint(c.info(t, "masters")) })
		if reply := c.ask(t, "DUNLOCK %s %s", key, token); reply != ":1" && time.Since(locked) < 4*time.Second { // later the lease may be over
			t.Errorf("DUNLOCK in the freeze: %s", reply)
		}
		eventually(t, "the other daemon has the change", func() bool { return strings.Contains(waiter.info(t, "slots")["slots1"], ",to="+to) }, func() string { return "" })
		if _, fence := waiter.granted(t, "DLOCK %s 5000 TOKEN the-token-of-round-%d WAIT 60000", queued, round); fence <= highest { // through the freeze
			t.Errorf("fence %d after %d", fence, highest)
		} else {
			highest = fence
		}
		waiter.ask(t, "DUNLOCK %s the-token-of-round-%d", queued, round)
		if output := <-moved; !strings.HasPrefix(output, "0 ") {
			t.Fatalf("slots move: %s", output)
		}
		eventually(t, "both daemons have the map", func() bool {
			return c.servedBy(t, first) == to && waiter.servedBy(t, first) == to
		}, func() string { return fmt.Sprint(c.info(t, "slots")) })
		nextID(waiter)
		locked = time.Now()
		token, fence = waiter.granted(t, "DLOCK %s 5000 WAIT 60000", key)
		if highest = max(highest, fence); fence < highest {
			t.Errorf("fence %d after %d", fence, highest)
		}
		for i, servers := range groups {
			if n := strings.Count(strings.Join(held(t, servers, key), " "), token); (n > 0) != (to == fmt.Sprint("g", i+1)) && time.Since(locked) < 4*time.Second {
				t.Errorf("%d masters of group %d hold a key of %s", n, i+1, to)
			}
		}
		c.ask(t, "DUNLOCK %s %s", key, token)
		old := dial(t, serveHere(t, nil, "--config", path)) // its map is that of before the moves
		old.awaitMaster(t, 0, "voting", "")
		old.awaitMaster(t, 5, "voting", "")
		token, fence = old.granted(t, "DLOCK %s 5000 WAIT 60000", key)
		if highest = max(highest, fence); fence < highest {
			t.Errorf("fence %d after %d", fence, highest)
		}
		old.ask(t, "DUNLOCK %s %s", key, token)
	}
	before := load.granted.Load()
	eventually(t, "the load goes on", func() bool { return load.granted.Load() > before+50 }, func() string { return fmt.Sprint(load.granted.Load()) })
	if load.frozen.Load() == 0 {
		t.Error("no client was refused while the slots moved")
	}
	t.Logf("%d locks, %d refused in a freeze, %d undecided", load.granted.Load(), load.frozen.Load(), load.undecided.Load())
}
