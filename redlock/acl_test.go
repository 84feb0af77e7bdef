package redlock

// acl_test.go: the user of configs/master-acl.txt may do all that the daemon does on a master,
// and nothing else. What it does is read from the scripts and from the code, so that no command
// is missed because no test happens to send it.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/redlock/events"
)

// aclWords are the name and the rules of the file's user.
func aclWords(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../configs/master-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	if len(words) < 3 || words[0] != "user" || words[1] != "redlockd" {
		t.Fatalf("the file begins with %q", words[:min(2, len(words))])
	}
	return words[1:]
}

// aclUser makes the user of the file on every master, with its password.
func (c *cluster) aclUser() {
	c.t.Helper()
	args := []any{"ACL", "SETUSER"}
	for _, word := range aclWords(c.t) {
		args = append(args, word)
	}
	for i, s := range c.servers {
		if _, err := s.Do("PEXPIRETIME", "none"); err != nil { // Redis 6.2: as ACCESS.md says
			args = slices.DeleteFunc(args, func(word any) bool { return word == "+pexpiretime" })
		}
		c.do(i, args...)
	}
}

// restricted is the trait of a daemon that is this user.
func restricted(_ *daemon, o *pool.Options) {
	for i := range o.Masters {
		o.Masters[i].Username, o.Masters[i].Password = "redlockd", "change-me"
	}
}

// denied is what a master has refused to any client.
func (c *cluster) denied(i int) string {
	c.t.Helper()
	entries, _ := c.do(i, "ACL", "LOG").([]any)
	return fmt.Sprint(entries...)
}

// Commands that are in no script of ours and in no call of our own.
var (
	// saidByRueidis is how it begins a connection, and a subscription.
	saidByRueidis = []string{"hello", "auth", "select", "client|setname", "client|tracking", "subscribe"}
	// saidByLibraries: their scripts run on the masters as they are. A library that needs one
	// more adds it here and to the file.
	saidByLibraries = []string{
		"pexpire", "expire", "expireat", "ttl", "unlink", "setnx", "setex", "psetex", "mget", "mset", "msetnx", "getrange", "lpush",
	}
)

var (
	calledByScript = regexp.MustCompile(`\bredis\.p?call\b(?:\('([A-Za-z]+)')?`)
	// Not what stands behind range: those are codes of errors.
	saidOutright = regexp.MustCompile(`(?:\b(?:Set|Words)\(|\bAskOne\([\w.]+, |\binDB\([\w.]+, db, |[({,:n] ?\[\]string\{|\bsay\()"([A-Z]{3,})"(?:, "([A-Z]+)")?`)
)

// parted are the commands of which the file allows single subcommands.
var parted = []string{"CLIENT", "CONFIG", "SCRIPT", "PUBSUB"}

// saidIn reads the commands of the files that match, as a rule names them.
func saidIn(t *testing.T, call *regexp.Regexp, patterns ...string) []string {
	t.Helper()
	var names []string
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			t.Fatalf("there is no %s", pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text = bytes.ReplaceAll(text, []byte(`TrackingOptions: []string{"OPTIN"}`), nil) // a word of CLIENT TRACKING
			for _, said := range call.FindAllSubmatch(text, -1) {
				name := string(said[1])
				if name == "" {
					t.Errorf("%s: %q does not name its command", file, said[0])
				}
				if slices.Contains(parted, name) {
					name += "|" + string(said[2])
				}
				names = append(names, strings.ToLower(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestACL_NamesEveryCommandThatIsSentAndNoOther(t *testing.T) {
	said := slices.Concat(saidByRueidis, saidByLibraries,
		saidIn(t, calledByScript, "scripts/*.lua", "../pool/admission/*.lua"), saidIn(t, saidOutright, "*.go", "engine/*.go", "events/*.go", "ids/*.go", "inspect/*.go", "lease/*.go", "renew/*.go", "wait/*.go", "work/*.go", "../pool/*.go", "../pool/wire/*.go", "../pool/admission/*.go", "../pool/notify/*.go", "../pool/setup/*.go"))
	var allowed []string
	for _, word := range aclWords(t) {
		if name, ok := strings.CutPrefix(word, "+"); ok {
			allowed = append(allowed, name)
		}
	}
	for _, name := range said {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is said, and +%[1]s is not in the file", name)
		}
	}
	for i, name := range allowed {
		if !slices.Contains(said, name) {
			t.Errorf("+%s is in the file, and nobody says %[1]s", name)
		}
		if slices.Contains(allowed[:i], name) {
			t.Errorf("+%s is in the file twice", name)
		}
	}
}

// A waiter behind another one in the queue first checks for dead waiters. It receives a release
// instead of asking for it.
func TestACL_AllowsToWait(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.aclUser()
	d := c.daemon(restricted)
	for _, fair := range []bool{true, false} {
		held := d.take("k", long)
		both := make(chan waited, 2) // an answer each
		out, _ := d.stands("k", LockRequest{Wait: patience})
		// On a slow machine the one behind may overtake it.
		d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: patience, Fair: fair}, func(g Grant, err error) { both <- waited{"k", g, err} })
		go func() { both <- <-out }()
		d.free("k", held.Token)
		for range cap(both) {
			d.free("k", got(t, both).Token)
		}
	}
	eventually(t, "the masters tell of keys", func() bool {
		for i := range c.servers {
			if clients, _ := c.do(i, "CLIENT", "LIST").(string); !strings.Contains(clients, "name=redlockd-news") {
				return false
			}
		}
		return true
	})
	d.idle()
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}

// The client's error is that no master answered; the log shows which master refused what.
func TestACL_WhatAMasterRefusesIsInTheLog(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.aclUser()
	for i := range c.servers {
		c.do(i, "ACL", "SETUSER", "redlockd", "-zrangebyscore")
	}
	log := make(chan string, 100) // more than a daemon says here
	d := c.daemon(restricted, func(_ *daemon, o *pool.Options) {
		o.Logger = slog.New(slog.NewTextHandler(lines(log), &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 2 {
		out, _ := d.stands("k", LockRequest{Wait: 500 * time.Millisecond})
		if w := <-out; w.err == nil {
			t.Fatal("a lock without the right to ask for it")
		}
	}
	d.idle()
	told := map[string]int{}
	for len(log) > 0 {
		if line := <-log; strings.Contains(line, "master returned an error") {
			for i := range c.servers {
				if strings.Contains(line, " master="+name(i)+" ") {
					told[name(i)]++
				}
			}
		}
	}
	for i := range c.servers {
		if told[name(i)] == 0 || told[name(i)] > 4 { // of each of the few scripts once
			t.Errorf("the log names master %s %d times", name(i), told[name(i)])
		}
	}
}

// lines is a log that a test reads line by line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestACL_AllowsEverythingThatTheDaemonDoes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	c.aclUser()
	d := c.daemon(restricted)

	held := d.take("invoices", 20*time.Second)
	isHeld(t, d.refuse("invoices", long))
	again := d.takeAs("invoices", held.Token, 20*time.Second)
	if again.Fence <= held.Fence {
		t.Errorf("fence %d after %d", again.Fence, held.Fence)
	}
	c.do(0, "DEL", "invoices") // a copy is missing: the extend repairs it
	if _, err := d.extend("invoices", held.Token, 25*time.Second); err != nil {
		t.Error(err)
	}
	d.settled(0, 1, 2)
	if was, err := d.unlock("invoices", "a-wrong-token"); was || err != nil {
		t.Errorf("a wrong token: %v, %v", was, err)
	}
	d.free("invoices", held.Token)

	d.draw("orders", 10)
	if err := d.reseed("orders", 1000); err != nil {
		t.Error(err)
	}
	if id := d.draw("orders", 1); id != 1001 {
		t.Errorf("id %d after the counter was set to 1000", id)
	}
	if names := d.counters(0); len(names) != 1 {
		t.Errorf("counters %q", names)
	}

	request := WorkRequest{Key: "report", Timeout: 20 * time.Second, Max: 2}
	w := d.find(request, WorkAcquired, 1)
	if _, err := d.prolong(w, 25*time.Second); err != nil {
		t.Error(err)
	}
	d.giveUp(w, true)
	w = d.find(request, WorkAcquired, 2)
	if v, err := d.view("report"); err != nil || v.Attempt != 2 {
		t.Errorf("view %+v, %v", v, err)
	}
	d.WorkGiveBack(w)
	w = d.find(request, WorkAcquired, 2)
	d.finish(w, true)

	d.get(LockRequest{Key: "noted", Requester: &Requester{Meta: "for people"}})
	d.get(LockRequest{Key: "readers", Mode: Readers})
	d.get(LockRequest{Key: "permits", Mode: PermitsOf(2)})
	for _, key := range []Key{"noted", "readers", "permits"} {
		if v := d.see(key); v.State != LockHeld {
			t.Errorf("%s: %+v", key, v)
		}
	}
	if told := walkOver(t, []*daemon{d}, Listing{Count: 100}, nil); len(told) != 3 {
		t.Errorf("listed %v", told)
	}
	for _, key := range []Key{"noted", "readers", "permits"} {
		d.forced(key)
	}

	j := listen(t, c.daemon(restricted).Locker)
	eventually(t, "the daemon knows that another one listens", d.engine.Pool.HasListeners)
	heard := d.take("heard", 10*time.Second)
	d.free("heard", heard.Token)
	j.wants(t, "heard", tale(events.Acquired, heard.Fence), tale(events.Released, heard.Fence))

	other := receive(t, d.request(LockRequest{DB: 3, Key: "k", TTL: 10 * time.Second})) // a group of its own, admitted now
	if other.err != nil {
		t.Error(other.err)
	}
	dials := d.engine.Pool.Group(0).Counters().Dials
	for i := range c.servers { // the next connections end their predecessors
		c.do(i, "CLIENT", "KILL", "USER", "redlockd")
	}
	eventually(t, "new connections", func() bool { return d.engine.Pool.Group(0).Counters().Dials >= dials+3 })
	for i := range c.servers {
		d.await(i, "voting")
	}
	d.free("after", d.take("after", 10*time.Second).Token)
	d.idle()
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}

func TestACL_AllowsBootstrap(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.aclUser()
	o := c.options()
	restricted(nil, &o)
	if err := setup.Bootstrap(t.Context(), o, setup.BootstrapTerms{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}

func TestACL_AllowsNothingElse(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, long)
	c.aclUser()
	conn, err := net.Dial("tcp", c.servers[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	replies := bufio.NewReader(conn)
	ask := func(line string) string {
		if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
			t.Fatal(err)
		}
		reply, err := replies.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.TrimSpace(reply)
	}
	if reply := ask("AUTH redlockd change-me"); reply != "+OK" {
		t.Fatal(reply)
	}
	for _, line := range []string{
		"FLUSHALL", "FLUSHDB", "CONFIG SET appendonly no", "CONFIG REWRITE", "CONFIG RESETSTAT", "KEYS *", "SHUTDOWN NOSAVE", "SCRIPT FLUSH", "SCRIPT KILL",
		"FUNCTION FLUSH", "ACL LIST", "ACL SETUSER x on", "CLIENT PAUSE 1", "CLIENT UNPAUSE", "MODULE LIST", "MONITOR", "REPLICAOF NO ONE", "SAVE", "BGSAVE",
		"BGREWRITEAOF", "RENAME a b", "GETDEL a", "PERSIST a", "LPOP a", "INCR a", "GETSET a b", "MIGRATE h 1 k 0 1", "RESTORE a 0 x", "SWAPDB 0 1", "PUBLISH a b", "SUBSCRIBE a", "PSUBSCRIBE redlockd:events:0", "PUBSUB CHANNELS", "SORT a", "OBJECT FREQ a",
		"EVAL \"return redis.call('FLUSHALL')\" 0",
	} {
		reply := ask(line)
		if strings.HasPrefix(line, "FUNCTION") && strings.HasPrefix(reply, "-ERR unknown command") { // before Redis 7.0
			continue
		}
		if !strings.HasPrefix(reply, "-NOPERM") && !strings.Contains(reply, "can't run this command") && !strings.Contains(reply, "ACL failure in script") {
			t.Errorf("%s: %s", line, reply)
		}
	}
	if reply := ask("PING"); reply != "+PONG" {
		t.Error(reply)
	}
}
