package daemon

// waiting_test.go: waits and locks that live with a connection, as clients of a
// daemon on real masters see them.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// pair are two daemons on the same three masters.
func pair(t *testing.T, args ...string) (servers []*faulty.Server, one, two string) {
	t.Helper()
	servers = faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	return servers, serveHere(t, addresses(servers), args...), serveHere(t, addresses(servers), args...)
}

// lines reads n lines of replies.
func (c *client) lines(t *testing.T, n int) []string {
	t.Helper()
	c.renew(t)
	all := make([]string, n)
	for i := range all {
		line, err := c.replies.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		all[i] = strings.TrimRight(line, "\r\n")
	}
	return all
}

func (c *client) send(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(c, format+"\r\n", args...); err != nil {
		t.Fatal(err)
	}
}

// waiting is how many requests wait at a daemon.
func waiting(t *testing.T, address string, want int) {
	t.Helper()
	c := dial(t, address)
	last := ""
	eventually(t, fmt.Sprintf("%d requests wait", want), func() bool {
		last = c.info(t, "locks")["waiters"]
		return last == fmt.Sprint(want)
	}, func() string { return last })
}

func TestWaiting_CommandsBehindAWaitAreHeldBackAsByBLPOP(t *testing.T) {
	_, one, two := pair(t)
	holder, waiter := dial(t, one), dial(t, two)
	holder.send(t, "DLOCK k 60000 TOKEN holders-token")
	holder.lines(t, 5)
	waiter.send(t, "ECHO before")
	waiter.send(t, "DLOCK k 60000 WAIT 60000 TOKEN waiters-token")
	waiter.send(t, "ECHO behind")
	if got := waiter.lines(t, 2); got[1] != "before" {
		t.Errorf("before the wait: %q", got)
	}
	waiting(t, two, 1)
	holder.send(t, "DUNLOCK k holders-token")
	if got := holder.lines(t, 1)[0]; got != ":1" {
		t.Errorf("DUNLOCK answered %s", got)
	}
	if got := waiter.lines(t, 7); got[0] != "*3" || got[2] != "waiters-token" || got[6] != "behind" {
		t.Errorf("the wait and what was behind it: %q", got)
	}
}

func TestWaiting_EndsWhenTheClientGoesAndWithNilWhenItsTimeIsOver(t *testing.T) {
	servers, one, two := pair(t)
	holder := dial(t, one)
	holder.send(t, "DLOCK k 60000 TOKEN holders-token")
	holder.lines(t, 5)
	goner := dial(t, two)
	goner.send(t, "DLOCK k 60000 FAIR WAIT 60000")
	waiting(t, two, 1)
	goner.Close()
	waiting(t, two, 0)
	for i, s := range servers {
		eventually(t, "the queue on master "+masterName(i)+" is gone", func() bool {
			n, err := s.Do("EXISTS", "redlockd:q:k")
			return err == nil && n == int64(0)
		}, func() string { return fmt.Sprint(s.Keys()) })
	}
	patient := dial(t, two)
	patient.send(t, "DLOCK k 60000 WAIT 50")
	if got := patient.lines(t, 1)[0]; got != "$-1" {
		t.Errorf("after its time the wait answered %s, want nil", got)
	}
}

func TestWaiting_ADrainingDaemonSendsSHUTDOWNToWaiters(t *testing.T) {
	_, address, drain := drainable(t)
	holder, waiter := dial(t, address), dial(t, address)
	holder.send(t, "DLOCK k 60000")
	holder.lines(t, 5)
	waiter.send(t, "DLOCK k 60000 WAIT 0")
	waiting(t, address, 1)
	ended := drain()
	if got := waiter.lines(t, 1)[0]; !strings.HasPrefix(got, "-SHUTDOWN") {
		t.Errorf("answered %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The daemon ends these connections, so their clients may still be at work.
func TestHold_OfADrainingDaemonRunsOutByItself(t *testing.T) {
	const clients = 20
	servers, address, drain := drainable(t)
	var tokens []string
	for i := range clients {
		holder := dial(t, address)
		holder.send(t, fmt.Sprintf("DLOCK k%d 60000 HOLD", i))
		tokens = append(tokens, holder.lines(t, 5)[2])
	}
	if err := <-drain(); err != nil {
		t.Error(err)
	}
	for i, token := range tokens {
		kept := 0
		for _, there := range held(t, servers, fmt.Sprintf("k%d", i)) {
			if there == token {
				kept++
			}
		}
		if kept < 2 {
			t.Errorf("k%d is left on %d of 3 masters, want a quorum", i, kept)
		}
	}
}

// drainable is a daemon of this process on three masters; drain begins its end and
// returns where its result will come.
func drainable(t *testing.T) (servers []*faulty.Server, address string, drain func() <-chan error) {
	t.Helper()
	servers = faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	var masters []string
	for i, s := range servers {
		masters = append(masters, masterName(i)+"="+s.Addr())
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	reader, writer := io.Pipe()
	ended := make(chan error, 1) // its one result
	go func() {
		err := run(ctx, []string{"--listen", "127.0.0.1:0", "--log-level=error", "--masters", strings.Join(masters, ",")}, []string{unhurried}, nil, writer, io.Discard)
		writer.CloseWithError(errors.Join(errors.New("the daemon has ended"), err))
		ended <- err
	}()
	address = readAddress(t, reader)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with run
	return servers, address, func() <-chan error { cancel(); return ended }
}

func TestHold_AClientThatIsCutOffFreesItsLock(t *testing.T) {
	servers, one, two := pair(t)
	holder, waiter := dial(t, one), dial(t, two)
	holder.send(t, "DLOCK k 60000 HOLD")
	token := holder.lines(t, 5)[2]
	waiter.send(t, "DLOCK k 60000 WAIT 60000")
	waiting(t, two, 1)
	if got := held(t, servers, "k"); got[0] != token && got[1] != token {
		t.Fatalf("the masters keep %q, want %s", got, token)
	}
	holder.Close()
	if got := waiter.lines(t, 5); got[0] != "*3" {
		t.Errorf("the waiter was answered %q", got)
	}
}

func TestHold_ASilentClientIsClosedAfterItsTimeout(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	relay := faulty.NewRelay(serveHere(t, addresses(servers), "--client-timeout", "300ms"))
	t.Cleanup(relay.Close)
	other := serveHere(t, addresses(servers)) // its clients may be silent
	holdQuickly(t, relay.Addr())
	relay.Pause() // the cable is pulled: no side receives an end
	waiter := dial(t, other)
	waiter.send(t, "DLOCK k 60000 WAIT 60000")
	if got := waiter.lines(t, 5); got[0] != "*3" {
		t.Errorf("the waiter was answered %q", got)
	}
}

// holdQuickly locks k for a connection. On a busy machine a client may be silent for
// too long before it has spoken: then another one tries.
func holdQuickly(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		c := dial(t, address)
		c.renew(t)
		_, _ = io.WriteString(c, "DLOCK k 60000 HOLD WAIT 60000\r\n") // cut off already: it is not answered
		switch line, err := c.replies.ReadString('\n'); {
		case err == nil && line == "*3\r\n":
			return
		case err == nil:
			t.Fatalf("DLOCK k HOLD: %s", line)
		}
	}
	t.Fatal("no client was quick enough")
}

func TestHold_ALossIsPushedToRESP3(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	holder := dial(t, serveHere(t, addresses(servers)))
	holder.send(t, "HELLO 3")
	holder.send(t, "ECHO said-hello")
	for holder.lines(t, 1)[0] != "said-hello" {
	}
	holder.send(t, "DLOCK k 10000 HOLD")
	token := holder.lines(t, 5)[2]
	for _, s := range servers {
		if _, err := s.Do("SET", "k", "somebody else", "PX", 60_000); err != nil {
			t.Fatal(err)
		}
	}
	got := holder.lines(t, 9)
	if got[0] != ">4" || got[2] != "dlock-lost" || got[4] != "k" || got[6] != token || got[8] == "" {
		t.Errorf("pushed %q", got)
	}
	if got := holder.ask(t, "DEXTEND k %s 1000", token); got != "_" {
		t.Errorf("DEXTEND of the lost lock: %s", got)
	}
}

// The holder's own daemon pushes the request, whichever daemon it comes through. Listeners receive it through every daemon.
func TestHold_ARequestToLetGoIsPushedAndPublished(t *testing.T) {
	_, one, two := pair(t)
	holder, listener, other := dial(t, one), dial(t, two), dial(t, one)
	holder.send(t, "HELLO 3")
	holder.send(t, "ECHO said-hello")
	for holder.lines(t, 1)[0] != "said-hello" {
	}
	holder.send(t, "DLOCK k 10000 HOLD")
	token := holder.lines(t, 5)[2]
	listener.send(t, "SUBSCRIBE dlock:k")
	listener.lines(t, 6)
	if got := other.ask(t, "DREVOKE k deploy"); got != ":1" {
		t.Errorf("through the holder's daemon: %s", got)
	}
	if got := holder.lines(t, 7); got[0] != ">3" || got[2] != "dlock-wanted" || got[4] != "k" || got[6] != "deploy" {
		t.Errorf("pushed %q", got)
	}
	elsewhere, got := dial(t, two), ""
	eventually(t, "a request through another daemon reaches the holder in time", func() bool {
		got = elsewhere.ask(t, "DREVOKE k deploy")
		return got == ":1"
	}, func() string { return got })
	for listener.line(t) != "dlock:k" {
	}
	listener.line(t) // the length
	if got := listener.line(t); !strings.HasPrefix(got, "wanted 0 ") {
		t.Errorf("published %s", got)
	}
	holder.send(t, "DUNLOCK k "+token)
	for got = ""; got != ":1" && got != ":0"; { // behind another push, if the first one was a second ago
		got = holder.line(t)
	}
	if got != ":1" {
		t.Errorf("the holder lets go: %s", got)
	}
}

func TestWaiting_ACycleOfConnectionsIsADEADLOCK(t *testing.T) {
	_, one, _ := pair(t)
	a, b := dial(t, one), dial(t, one)
	a.send(t, "DLOCK x 60000")
	a.lines(t, 5)
	b.send(t, "DLOCK y 60000")
	b.lines(t, 5)
	a.send(t, "DLOCK y 60000 WAIT 60000")
	operator := dial(t, one)
	eventually(t, "the masters have refused it", func() bool { return operator.info(t, "locks")["ballots_refused"] != "0" },
		func() string { return operator.info(t, "locks")["ballots_refused"] })
	b.send(t, "DLOCK x 60000 WAIT 60000")
	if got := b.lines(t, 1)[0]; !strings.HasPrefix(got, "-DEADLOCK ") || !strings.Contains(got, "'x' -> 'y'") {
		t.Errorf("answered %s", got)
	}
}

// A grant whose reply is late arrives when the lock is another client's: the command must
// not run until an extension has shown that the lock is held.
func TestWaiting_LockRunsNothingOnALateGrant(t *testing.T) {
	t.Parallel()
	servers, one, two := pair(t)
	relay := faulty.NewRelay(two)
	defer relay.Close()
	holder := dial(t, one)
	holder.types(t, "DUNLOCK k "+holder.lock(t, "k"), ":1")
	holder.send(t, "DLOCK k 30000 TOKEN holders-token")
	holder.lines(t, 5)
	ran := filepath.Join(t.TempDir(), "ran")
	ended := make(chan string, 1)
	go func() {
		code, output := typed(t, nil, "lock", "--connect", relay.Addr(), "--ttl", "3s", "--wait", "1m", "k", "--", "sh", "-c", "echo > "+ran)
		ended <- fmt.Sprint(code, output)
	}()
	waiting(t, two, 1)
	relay.Pause(faulty.ToClient)
	holder.types(t, "DUNLOCK k holders-token", ":1")
	waiting(t, two, 0) // the lock is granted, and its reply is on its way
	next := dial(t, one)
	next.send(t, "DLOCK k 30000 TOKEN the-next-ones WAIT 60000")
	if got := next.lines(t, 5); got[2] != "the-next-ones" {
		t.Fatalf("the next one was answered %q", got)
	}
	relay.Resume(faulty.ToClient)
	waiter := dial(t, two)
	eventually(t, "the lock is waited for again", func() bool {
		if _, err := os.Stat(ran); err == nil {
			t.Fatal("the command ran while somebody else held the lock")
		}
		return waiter.info(t, "locks")["waiters"] == "1"
	}, func() string { return strings.Join(held(t, servers, "k"), " ") })
	next.types(t, "DUNLOCK k the-next-ones", ":1")
	if end := <-ended; !strings.HasPrefix(end, "0redlockd lock: waits up to 1m0s for k, held by ") || strings.Count(end, "\n") != 1 {
		t.Errorf("it ended with %s", end)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("the command did not run:", err)
	}
}

// No renewal is due before the test ends: the daemon itself, or the masters, must have
// announced what became of the lock.
func TestHold_TheHolderReceivesItsLossAtOnce(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	args := []string{"--bootstrap", "--max-ttl", "1h", "--max-keep", "1h", "--master-timeout", "1s"}
	one := serveHere(t, addresses(servers), args...)
	two := serveHere(t, addresses(servers), args...)
	by := func(address, words string) func() {
		return func() { dial(t, address).types(t, words, ":1") }
	}
	onMasters := func(words ...any) func() {
		return func() {
			for _, s := range servers[:2] {
				if _, err := s.Do(words...); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	dial(t, one).ready(t)
	dial(t, two).ready(t)
	const forced, lost = "it was released by force", "a quorum of masters no longer holds it"
	for name, c := range map[string]struct {
		take   func()
		reason string
	}{
		"DFORCE, same daemon": {by(one, "DFORCE k"), forced}, "DEL, same daemon": {by(one, "DEL k"), forced},
		"a script, same daemon":  {by(one, `EVAL "return redis.call('del', KEYS[1])" 1 k`), forced},
		"DFORCE, another daemon": {by(two, "DFORCE k"), lost}, "DEL, another daemon": {by(two, "DEL k"), lost},
		"a script, another daemon": {by(two, `EVAL "return redis.call('del', KEYS[1])" 1 k`), lost},
		"DEL, masters":             {onMasters("DEL", "k"), lost}, "RENAME, masters": {onMasters("RENAME", "k", "elsewhere"), lost},
	} {
		holder := dial(t, one)
		holder.send(t, "HELLO 3")
		holder.send(t, "DLOCK k 3600000 HOLD TOKEN holders-token")
		for holder.line(t) != "holders-token" {
		}
		holder.lines(t, 2)
		copies := func() string { return strings.Join(held(t, servers, "k"), " ") }
		eventually(t, "all masters have the lock", func() bool { return strings.Count(copies(), "holders-token") == 3 }, copies)
		c.take()
		if strings.HasSuffix(name, ", masters") {
			eventually(t, "the loss is announced", func() bool {
				onMasters("DEL", "k")() // the daemon may have made the first copy again before the second was gone
				return holder.hasReply(t)
			}, copies)
		}
		if got := holder.lines(t, 9); got[0] != ">4" || got[2] != "dlock-lost" || got[6] != "holders-token" || got[8] != c.reason {
			t.Errorf("%s: the holder read %q, want %q", name, got, c.reason)
		}
		for _, s := range servers {
			if _, err := s.Do("DEL", "k", "elsewhere"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWaiting_ForAKeyThatIsConfiguredAsFairTakesAPlaceInTheQueue(t *testing.T) {
	servers, one, two := pair(t, "--fair-keys", "queue:*")
	holder := dial(t, one)
	waiters := []*client{dial(t, one), dial(t, two)}
	for i, key := range []string{"queue:a", "other"} {
		holder.send(t, "DLOCK %s 60000 TOKEN holders-token", key)
		holder.lines(t, 5)
		waiters[i].send(t, "DLOCK %s 60000 WAIT 60000", key)
	}
	waiting(t, one, 1)
	waiting(t, two, 1)
	for i, s := range servers {
		eventually(t, "a place on master "+masterName(i), func() bool {
			n, err := s.Do("EXISTS", "redlockd:q:queue:a")
			return err == nil && n == int64(1)
		}, func() string { return fmt.Sprint(s.Keys()) })
		if n, err := s.Do("EXISTS", "redlockd:q:other"); err != nil || n != int64(0) {
			t.Errorf("a queue for a key that is not: %v, %v", n, err)
		}
	}
	err := run(context.Background(), []string{"--embedded", "3", "--listen", "127.0.0.1:0", "--fair-keys", "queue:["}, nil, nil, io.Discard, t.Output())
	if err == nil || !strings.Contains(err.Error(), "fair-keys") || !strings.Contains(err.Error(), `write \[`) {
		t.Errorf("%v", err)
	}
}
