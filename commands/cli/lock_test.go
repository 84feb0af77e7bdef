// Tests of the lock's command line and of how it is taken, kept and given back,
// against a daemon that is made of a list of answers.

package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

func TestLockOptions_RefuseWhatCannotWork(t *testing.T) {
	for line, says := range map[string]string{
		"":                                "KEY -- COMMAND",
		"k":                               "KEY -- COMMAND",
		"k true":                          "KEY -- COMMAND",
		"k --":                            "KEY -- COMMAND",
		"-- k true":                       "KEY -- COMMAND",
		"a b -- true":                     "KEY -- COMMAND",
		"--ttl 50ms k -- true":            "--ttl is 50ms, allowed are",
		"--ttl 1h1ns k -- true":           "whole milliseconds",
		"--ttl never k -- true":           "--ttl",
		"--wait -1s k -- true":            "--wait is -1s",
		"--grace 20s k -- true":           "--grace is 20s, allowed are 0 to 15s",
		"--on-lost pray k -- true":        "allowed are kill and warn",
		"--db -1 k -- true":               "--db is -1",
		"--connect= k -- true":            "--connect names no daemon",
		"--connect 127.0.0.1:1,, k -- tr": "--connect names no daemon",
	} {
		r := record()
		err := r.Run(t.Context(), append([]string{"lock"}, strings.Fields(line)...))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", line, err, says)
		}
	}
}

func TestLockOptions_LeaveTheCommandsOwnAlone(t *testing.T) {
	a := App{Environ: []string{"LOCK_CONNECT=a:1,b:2"}}
	o, err := a.lockOptions(strings.Fields("k --ttl 6s --on-lost=warn -- rsync --wait -a -- x"))
	if err != nil || o.key != "k" || strings.Join(o.command, " ") != "rsync --wait -a -- x" || o.ttl != 6*time.Second ||
		o.wait != 10*time.Second || o.grace != time.Second || o.onLost != "warn" || strings.Join(o.connect, " ") != "a:1 b:2" {
		t.Errorf("%+v, %v", o, err)
	}
}

const granted = "*3\r\n$5\r\ntoken\r\n:30000\r\n:41\r\n"

// locked runs lock on scripted daemons; printed is its standard error.
func locked(t *testing.T, environ []string, daemons []*script, args ...string) (code int, out, printed string) {
	t.Helper()
	list := make([]string, len(daemons))
	for i, s := range daemons {
		list[i] = s.Addr().String()
	}
	var stdout, stderr faulty.Log
	a := App{Environ: append([]string{"PATH=/usr/bin:/bin", "LOCK_CONNECT=" + strings.Join(list, ",")}, environ...), Out: &stdout, Err: &stderr}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	code = Report(&stderr, a.Run(ctx, append([]string{"lock"}, args...)))
	return code, stdout.String(), stderr.String()
}

func TestLock_HandsTheLockToTheCommandAndGivesItBack(t *testing.T) {
	s := startScript(t, map[string][]string{"DLOCK": {granted}})
	environ := []string{"LOCK_USER=anna", "LOCK_PASSWORD=secret", "LOCK_FENCE=7"}
	code, out, printed := locked(t, environ, []*script{s}, "--db", "3", "invoices", "--", "sh", "-c", `echo $LOCK_KEY $LOCK_FENCE ${#LOCK_TOKEN} "$LOCK_PASSWORD"; exit 9`)
	if code != 9 || out != "invoices 41 27 \n" || printed != "" {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
	received := strings.Join(s.received, "\n")
	if meta := regexp.MustCompile(` META (\S+)@(\S+) pid (\d+): sh\n`).FindStringSubmatch(received + "\n"); meta == nil || meta[3] != strconv.Itoa(os.Getpid()) {
		t.Errorf("META is %q in\n%s", meta, received)
	}
	if !strings.HasPrefix(received, "AUTH anna secret\nSELECT 3\nDLOCK invoices 30000 TOKEN ") || s.count("DUNLOCK invoices") != 1 {
		t.Errorf("received\n%s", received)
	}
}

func TestLock_DistinguishesHeldFromFailed(t *testing.T) {
	for _, c := range []struct {
		answer, says string
		code         int
	}{
		{"$-1\r\n", "lock k: held by another client", ExitHeld},
		{"-NOQUORUM 1 of 3 masters answered\r\n", "lock k: NOQUORUM 1 of 3", ExitRuntime},
		{"-ERR ttl is too long\r\n", "ERR ttl is too long", ExitRuntime},
		{"*1\r\n:1\r\n", "which is no grant", ExitRuntime},
		{"%1\r\n", "not RESP2", ExitRuntime},
	} {
		s := startScript(t, map[string][]string{"DLOCK": {c.answer}})
		code, out, printed := locked(t, nil, []*script{s}, "--wait", "0", "k", "--", "echo", "ran")
		if code != c.code || out != "" || !strings.Contains(printed, c.says) {
			t.Errorf("%q: code %d, out %q, printed %q", c.answer, code, out, printed)
		}
		if s.count("DUNLOCK k") == 0 || s.count("DLOCK k") != 1 {
			t.Errorf("%q: %d tries; what may have been taken was given back %d times", c.answer, s.count("DLOCK k"), s.count("DUNLOCK k"))
		}
	}
}

func TestLock_RetriesWhileItMayWait(t *testing.T) {
	t.Parallel()
	s := startScript(t, map[string][]string{"DLOCK": {"$-1\r\n", "-TRYLATER busy\r\n", "", "-NOQUORUM 1 of 3\r\n", granted}, "DEXTEND": {":30000\r\n"}})
	code, out, printed := locked(t, nil, []*script{s}, "--wait", "1m", "k", "--", "echo", "ran")
	if code != 0 || out != "ran\n" || s.count("DLOCK k") != 5 {
		t.Errorf("code %d, out %q, printed %q, %d tries", code, out, printed, s.count("DLOCK k"))
	}
}

// The first try waits for nothing, so that the reason is known when the wait begins.
func TestLock_ShowsWhyItBeginsToWait(t *testing.T) {
	t.Parallel()
	holder := "*1\r\n*6\r\n$4\r\nname\r\n$4\r\nanna\r\n$3\r\nttl\r\n:20000\r\n$4\r\nmeta\r\n$6\r\n\x1b[2Jno\r\n"
	for _, c := range []struct{ first, view, says string }{
		{"$-1\r\n", "*4\r\n$5\r\nstate\r\n+held\r\n$7\r\nholders\r\n" + holder, `, held by name "anna" meta "\x1b[2Jno", for 20s unless it is extended`},
		{"$-1\r\n", "-NOPERM this user may not read\r\n", ", held by another client"},
		{"-NOQUORUM 1 of 3\r\n", "+OK\r\n", ": NOQUORUM 1 of 3"},
		{"-TRYLATER busy\r\n", "+OK\r\n", ": TRYLATER busy"},
	} {
		s := startScript(t, map[string][]string{"DLOCK": {c.first, "-NOQUORUM 0 of 3\r\n", granted}, "DINFO": {c.view}, "DEXTEND": {":30000\r\n"}})
		code, out, printed := locked(t, nil, []*script{s}, "--wait", "5m", "k", "--", "echo", "ran")
		if want := "redlockd lock: waits up to 5m0s for k" + c.says + "\n"; code != 0 || out != "ran\n" || printed != want || s.count("DLOCK k") != 3 {
			t.Errorf("code %d, out %q, %d tries, printed %q, want %q", code, out, s.count("DLOCK k"), printed, want)
		}
	}
}

func TestLock_WaitsInTheQueue(t *testing.T) {
	s := startScript(t, map[string][]string{
		"CONFIG":  {"*2\r\n$8\r\nmax-wait\r\n$2\r\n2m\r\n"},
		"DLOCK":   {"$-1\r\n", granted},
		"DEXTEND": {":30000\r\n"},
	})
	if code, out, printed := locked(t, nil, []*script{s}, "--wait", "1h", "k", "--", "echo", "ran"); code != 0 || out != "ran\n" {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
	var waits []bool
	for _, line := range s.received {
		if strings.HasPrefix(line, "DLOCK k") {
			waits = append(waits, strings.HasSuffix(line, " WAIT 120000"))
		}
	}
	if !slices.Equal(waits, []bool{false, true}) { // the first try shows whether there is anything to wait for
		t.Errorf("received %q", s.received)
	}
}

func TestLock_WaitsInTheQueueForAUserWhoSeesNothing(t *testing.T) {
	no := []string{"-NOPERM this user has no permissions\r\n"}
	s := startScript(t, map[string][]string{"CONFIG": no, "DINFO": no, "DLOCK": {"$-1\r\n", granted}, "DEXTEND": {":30000\r\n"}})
	code, out, printed := locked(t, nil, []*script{s}, "--wait", "1h", "k", "--", "echo", "ran")
	if code != 0 || out != "ran\n" || !strings.Contains(strings.Join(s.received, "\n"), " WAIT 600000") {
		t.Errorf("code %d, out %q, printed %q, received %q", code, out, printed, s.received)
	}
}

// A grant that was waited for proves nothing until an extension has.
func TestLock_RunsNothingBehindWAITUntilTheLockIsConfirmed(t *testing.T) {
	s := startScript(t, map[string][]string{
		"CONFIG":  {"*2\r\n$8\r\nmax-wait\r\n$2\r\n2m\r\n"},
		"DLOCK":   {"$-1\r\n", granted, granted, granted},
		"DEXTEND": {"$-1\r\n", "-NOQUORUM 1 of 3\r\n", ":30000\r\n"},
	})
	code, out, printed := locked(t, nil, []*script{s}, "--wait", "1h", "k", "--", "sh", "-c", "echo $LOCK_TOKEN")
	if code != 0 || strings.Count(out, "\n") != 1 {
		t.Fatalf("code %d, out %q, printed %q", code, out, printed)
	}
	var tokens []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.received {
		if words := strings.Fields(line); words[0] == "DLOCK" {
			tokens = append(tokens, words[4])
		}
	}
	if len(tokens) != 4 || tokens[0] != tokens[1] || tokens[1] == tokens[2] || tokens[2] != tokens[3] || out != tokens[3]+"\n" {
		t.Errorf("tokens %q and %q for the command; one that was lost is not used again, one that may be held is", tokens, out)
	}
}

func TestLock_RunsNothingIfTheGrantHasNoTimeLeft(t *testing.T) {
	s := startScript(t, map[string][]string{"DLOCK": {"*3\r\n$5\r\ntoken\r\n:0\r\n:41\r\n"}})
	code, out, printed := locked(t, nil, []*script{s}, "--wait", "0", "k", "--", "echo", "ran")
	if code != ExitRuntime || out != "" || !strings.Contains(printed, "the lease ended before the daemon's answer arrived") || s.count("DUNLOCK k") == 0 {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
}

func TestLock_GoesToTheNextDaemonWhenOneFails(t *testing.T) {
	s := startScript(t, map[string][]string{"DLOCK": {granted}})
	if code, out, printed := locked(t, nil, nil, "--connect", faulty.FreeAddr(t)+","+s.Addr().String(), "k", "--", "echo", "ran"); code != 0 || out != "ran\n" {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
}

func TestLock_TrustsTheCertificatesOfCA(t *testing.T) {
	pair := httptest.NewTLSServer(nil) // for its certificate
	defer pair.Close()
	s := startScript(t, map[string][]string{"DLOCK": {granted}}, func(ln net.Listener) net.Listener { return tls.NewListener(ln, pair.TLS) })
	ca, empty := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "empty.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate().Raw})
	if err := errors.Join(os.WriteFile(ca, text, 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	address := "tls:" + s.Addr().String()
	for _, c := range []struct {
		ca   string
		code int
		says string
	}{{ca, 0, ""}, {"", ExitRuntime, "certificate"}, {empty, ExitUsage, "holds no certificate"}, {"/does/not/exist", ExitUsage, "--ca"}} {
		code, _, printed := locked(t, nil, nil, "--connect", address, "--ca", c.ca, "k", "--", "true")
		if code != c.code || !strings.Contains(printed, c.says) || strings.Contains(printed, "waits") {
			t.Errorf("--ca %s: code %d, printed %q", c.ca, code, printed)
		}
	}
}

func TestLock_DoesNotWaitForAnAddressThatIsNone(t *testing.T) {
	if code, out, printed := locked(t, nil, nil, "--connect", "no-port", "k", "--", "echo", "ran"); code != ExitRuntime || out != "" || strings.Count(printed, "\n") != 1 || !strings.Contains(printed, "missing port in address") {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
}

// A machine so busy that the lease is over before its extension gets longer leases.
func TestLock_KeepsTheLeaseWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	for ttl := 900 * time.Millisecond; ; ttl *= 2 {
		short := fmt.Sprintf("*3\r\n$5\r\ntoken\r\n:%d\r\n:41\r\n", ttl.Milliseconds())
		s := startScript(t, map[string][]string{"DLOCK": {short}, "DEXTEND": {"", fmt.Sprintf(":%d\r\n", ttl.Milliseconds())}})
		code, _, printed := locked(t, nil, []*script{s}, "--ttl", ttl.String(), "k", "--", "sleep", fmt.Sprint((ttl * 9 / 4).Seconds()))
		if strings.Contains(printed, "could not be extended in time") && ttl < 20*time.Second {
			continue
		}
		if code != 0 || s.count("DEXTEND k") < 3 || !strings.Contains(printed, "could not be extended, trying again") {
			t.Errorf("code %d, %d extensions, printed %q", code, s.count("DEXTEND k"), printed)
		}
		return
	}
}

// The quorum replies that it is lost, or no reply comes: the command must end,
// and so must what it has started.
func TestLock_EndsTheCommandWhenTheLockIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		validity     int
		extend, says string
	}{
		"lost":    {60_000, "$-1\r\n", "a quorum of masters does not hold the lock"},
		"unknown": {900, "-NOQUORUM 1 of 3\r\n", "the lock could not be extended in time"},
	} {
		t.Run(name, func(t *testing.T) {
			grant := fmt.Sprintf("*3\r\n$5\r\ntoken\r\n:%d\r\n:41\r\n", c.validity)
			s := startScript(t, map[string][]string{"DLOCK": {grant}, "DEXTEND": {c.extend}})
			code, out, printed := locked(t, nil, []*script{s}, "--ttl", "900ms", "k", "--", "sh", "-c", "sleep 600; echo survived")
			if code != 128+15 || out != "" || !strings.Contains(printed, "LOST: "+c.says) {
				t.Errorf("code %d, out %q, printed %q", code, out, printed)
			}
		})
	}
}

func TestLock_KillsWhatDoesNotEndOnTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startScript(t, map[string][]string{"DLOCK": {granted}, "DEXTEND": {":30000\r\n"}})
	s.turn = func() { // the command does not mind TERM: now the lock is lost
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			s.answers["DEXTEND"] = []string{"$-1\r\n"}
		}
	}
	code, _, printed := locked(t, nil, []*script{s}, "--ttl", "900ms", "--grace", "100ms", "k", "--", "sh", "-c", `trap "" TERM; : > "$0/ready"; while :; do sleep 1; done`, dir)
	if code != 128+9 {
		t.Errorf("code %d, printed %q", code, printed)
	}
}

func TestLock_OnlyWarnsIfThatIsWanted(t *testing.T) {
	t.Parallel()
	s := startScript(t, map[string][]string{"DLOCK": {"*3\r\n$5\r\ntoken\r\n:900\r\n:41\r\n"}, "DEXTEND": {"$-1\r\n"}, "DUNLOCK": {":0\r\n"}})
	code, out, printed := locked(t, nil, []*script{s}, "--ttl", "900ms", "--on-lost", "warn", "k", "--", "sh", "-c", "sleep 2; echo survived")
	if code != 0 || out != "survived\n" || strings.Count(printed, "LOST") != 1 {
		t.Errorf("code %d, out %q, printed %q", code, out, printed)
	}
}

func TestLock_GivesTheLockBackIfTheCommandCannotBeRun(t *testing.T) {
	for command, want := range map[string]int{"/does/not/exist": ExitNotFound, "no-such-command": ExitNotFound, "/": ExitNotExecutable} {
		s := startScript(t, map[string][]string{"DLOCK": {granted}})
		if code, _, printed := locked(t, nil, []*script{s}, "k", "--", command); code != want || s.count("DUNLOCK k") != 1 {
			t.Errorf("%s: code %d, %d releases, printed %q", command, code, s.count("DUNLOCK k"), printed)
		}
	}
}

func TestLock_PassesTheRequestToEndOn(t *testing.T) {
	s := startScript(t, map[string][]string{"DLOCK": {granted}})
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	go func() { // the command shows that it runs
		_, _ = bufio.NewReader(reader).ReadString('\n')
		cancel()
		_, _ = io.Copy(io.Discard, reader)
	}()
	var stderr faulty.Log
	a := App{Environ: []string{"PATH=/usr/bin:/bin"}, Out: writer, Err: &stderr}
	err := a.Run(ctx, []string{"lock", "--connect", s.Addr().String(), "k", "--", "sh", "-c", `trap "exit 5" TERM; echo there; while :; do sleep 0.1; done`})
	writer.Close()
	var exit *Exit
	if !errors.As(err, &exit) || exit.Code != 5 || s.count("DUNLOCK k") != 1 {
		t.Errorf("%v, printed %q", err, stderr.String())
	}
}
