package daemon

// newgroup_test.go: what a person reads who starts before the masters are ready, or with an old list.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/pool/faulty"
)

// The start ends with the command that begins the group, and a client is told the reason once.
func TestProcess_OfANewGroupSaysHowItBegins(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1) // run reports once
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--log-level=error", "--masters", listOf(servers)}, []string{unhurried}, nil, writer, io.Discard)
		writer.Close()
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewReader(reader)
	var shown string
	for !strings.Contains(shown, "NOT SERVING") {
		line, err := lines.ReadString('\n')
		if shown += line; err != nil {
			t.Fatalf("the start prints\n%s%v", shown, err)
		}
	}
	command := regexp.MustCompile(`NOT SERVING: for a new group run redlockd (bootstrap --masters [^ ]+) `).FindStringSubmatch(shown)
	if command == nil {
		t.Fatal(shown)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(shown, "redlockd listens on "), "\n")
	c := dial(t, address)
	want := fmt.Sprintf("-NOQUORUM 0 of 3 masters answered, 2 needed: a=%s, b=%s, c=%s refused (is empty, and so are all masters: for a new group run redlockd bootstrap; if they lost their memory, see All masters lost in the runbook)",
		servers[0].Addr(), servers[1].Addr(), servers[2].Addr())
	eventually(t, "a client is told the reason once", func() bool { return c.ask(t, "DLOCK invoices 1000") == want }, func() string { return c.ask(t, "DLOCK invoices 1000") })
	if code, output := typed(t, nil, strings.Fields(command[1])...); code != cli.ExitOK {
		t.Fatalf("code %d:\n%s", code, output)
	}
	c.awaitVoters(t, servers)
	c.lock(t, "invoices")
}

// A daemon with an old file serves, and that stays visible until the file is corrected.
func TestProcess_AListThatDiffersStaysVisible(t *testing.T) {
	servers := faulty.StartGroup(t, 4)
	bootstrapGroup(t, servers[:3])
	former := listOf(servers[:3])
	daemon := operate(t, "--masters", former)
	dial(t, daemon.port).awaitVoters(t, servers[:3])
	differs := func() string {
		_, text := daemon.get(t, "/metrics", "")
		return regexp.MustCompile(`redlockd_masters_list_differs\{database="0"\} \d`).FindString(text)
	}
	verdict := func() string {
		_, output := typed(t, nil, "top", "--once", "--connect", daemon.port)
		return output
	}
	if got, shown := differs(), verdict(); !strings.HasSuffix(got, " 0") || strings.Contains(shown, "settings, which have") {
		t.Fatalf("%q\n%s", got, shown)
	}
	if code, output := typed(t, nil, "masters", "replace", "c", "d="+servers[3].Addr(), "--masters", former); code != cli.ExitOK {
		t.Fatalf("code %d:\n%s", code, output)
	}
	eventually(t, "the metric shows it", func() bool { return strings.HasSuffix(differs(), " 1") }, differs)
	if shown := verdict(); !strings.Contains(shown, "The masters in use are not those of this daemon's settings, which have a="+servers[0].Addr()) {
		t.Error(shown)
	}
	if code, output := typed(t, nil, "check", "--masters", former); code != cli.ExitOK || !strings.HasPrefix(output, "your list differs; daemons use a="+servers[0].Addr()) {
		t.Errorf("code %d:\n%s", code, output)
	}
}

// A check that is interrupted has stored nothing.
func TestProcess_AnInterruptedCheckHasChangedNothing(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	for _, s := range servers {
		s.Stop()
	}
	process := exec.CommandContext(t.Context(), os.Args[0], "check", "--masters", listOf(servers))
	process.Env = asDaemon()
	log := &faulty.Log{}
	process.Stderr = log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	awaits(t, log, "waiting for a master")
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // ends with 1
	if text := log.String(); !strings.Contains(text, "redlockd: check: interrupted; it changes nothing, so run it again when you like") || strings.Contains(text, "stored") {
		t.Error(text)
	}
}

// What is printed as a list of masters is accepted as one, and means the same.
func TestLists_OfMastersThatArePrintedAreAccepted(t *testing.T) {
	authority := faulty.NewAuthority(t)
	mine := authority.Issue("daemon.test")
	query := url.Values{"ca": {authority.CAFile}, "cert": {mine.CertFile}, "key": {mine.KeyFile}, "server-name": {"master.test"}}.Encode()
	given, err := configs.ParseMasters([]string{
		"10.0.0.1:6379", "b=10.0.0.2:6379", "[::1]:7000", "unix:/run/r.sock", "s=unix:/run/s.sock", "redis://u:PASSWORD@h:1", "p=redis://:PASSWORD@h:2",
		"rediss://10.0.0.3", "t=rediss://u:PASSWORD@h:3?" + query, "v=unix://u:PASSWORD@/run/v.sock",
	})
	if err != nil {
		t.Fatal(err)
	}
	options, err := poolOptions(configs.Config{Masters: given}, nil)
	if err != nil {
		t.Fatal(err)
	}
	printed := options.Names(options.Configuration(1))
	again, err := configs.ParseMasters(strings.Split(printed, ","))
	if err != nil {
		t.Fatalf("%s: %v", printed, err)
	}
	slices.SortFunc(given, func(a, b configs.Master) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range given {
		b := again[i]
		same := (a.TLS == nil) == (b.TLS == nil) && (a.TLS == nil || *a.TLS == *b.TLS)
		if a.TLS, b.TLS = nil, nil; a != b || !same {
			t.Errorf("%+v is printed as %+v", given[i], again[i])
		}
	}
	next := options.Configuration(2)
	next.Masters = append(next.Masters, pool.Master{Name: "new", Network: "tcp", Address: "10.0.0.9:6379"})
	options.Masters = options.Masters[8:] // a master that is not known is reached as the first one is
	if printed := options.Names(next); !strings.Contains(printed, "new=rediss://u:PASSWORD@10.0.0.9:6379?") {
		t.Errorf("a master that joins is missing in %s", printed)
	}
}
