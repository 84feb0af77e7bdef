package daemon

// Tests of what an operator types: check, reconfigure and lock, as processes.

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/commands/cli"
	"redlockd/pool/faulty"
)

// typed runs the program until it ends.
func typed(t *testing.T, environ []string, args ...string) (code int, output string) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], args...)
	process.Env = append(asDaemon(), environ...)
	text, err := process.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return process.ProcessState.ExitCode(), string(text)
}

// typedInTime runs the program, and repeats it as its output requests when the machine
// was too busy for a write to all masters within half a second.
func typedInTime(t *testing.T, args []string) (code int, output string) {
	t.Helper()
	code, output = typed(t, nil, args...)
	for end := time.Now().Add(testTimeout); strings.Contains(output, "run it again when masters and network are quick") && time.Now().Before(end); {
		code, output = typed(t, nil, append(args, "--force")...)
	}
	return code, output
}

func listOf(servers []*faulty.Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = string(rune('a'+i)) + "=" + s.Addr()
	}
	return strings.Join(names, ",")
}

func TestProcess_ChecksBootstrapsAndReconfiguresMasters(t *testing.T) {
	servers := faulty.StartGroup(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	masters := "--masters=" + listOf(servers)
	t.Setenv("REDLOCKD_DATABASES", "1")
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"check", masters}, cli.ExitOK, "FIT"},
		{[]string{"reconfigure", masters}, cli.ExitRuntime, "for a new group: redlockd bootstrap"},
		{[]string{"bootstrap", masters, "--max-ttl=1s", "--max-keep=1s"}, cli.ExitOK, "may vote"},
		{[]string{"check", masters}, cli.ExitRuntime, "serves daemons with other settings: max-ttl is 60000 here and 1000 there"},
		{[]string{"reconfigure", masters, "--max-ttl=2s", "--max-keep=1s"}, cli.ExitOK, "3 masters begin a new incarnation"},
		{[]string{"check", masters, "--max-ttl=2s", "--max-keep=1s"}, cli.ExitOK, "votes in"},
		{[]string{"quarantine", "b", masters}, cli.ExitRuntime, "0 of the 2 other masters vote"},
		{[]string{"quarantine", "b", masters, "--force"}, cli.ExitOK, "master b: it does not vote for 1m2.6s from its next admission"},
		{[]string{"quarantine", servers[1].Addr(), masters}, cli.ExitOK, "master b: it has no incarnation in any database"},
		{[]string{"quarantine", "x", masters}, cli.ExitRuntime, `"x" is the name or address of no master; nothing was changed; allowed: a=`},
		{[]string{"quarantine", masters}, cli.ExitUsage, "quarantine needs a master"},
		{[]string{"check"}, cli.ExitUsage, "check needs --masters"},
	} {
		if code, output := typedInTime(t, step.args); code != step.code || !strings.Contains(output, step.says) {
			t.Errorf("%q: code %d, want %d and %q:\n%s", step.args, code, step.code, step.says, output)
		}
	}
}

// The list of masters has the address of a daemon: that alone is wrong with it.
func TestProcess_CheckNamesADaemonAmongTheMasters(t *testing.T) {
	servers := faulty.StartGroup(t, 2)
	masters := "--masters=" + listOf(servers) + ",c=" + serveHere(t, nil, "--embedded=3")
	code, output := typedInTime(t, []string{"check", masters, "--databases=1"})
	if code != cli.ExitRuntime || strings.Count(output, "\nc: ") != 1 || !strings.Contains(output, "\nc: is a redlockd: ") {
		t.Errorf("code %d:\n%s", code, output)
	}
}

// A daemon does not serve a new group that it could not bootstrap; a group in use it serves.
func TestProcess_BootstrapOfADaemonEndsWithTheReason(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	servers[2].Kill()
	args := []string{"--bootstrap", "--listen", "127.0.0.1:0", "--masters", listOf(servers)}
	code, output := typed(t, nil, args...)
	if code != cli.ExitRuntime || !strings.Contains(output, "redlockd: bootstrap needs all 3 masters: master c: ") {
		t.Errorf("code %d:\n%s", code, output)
	}
	for i, s := range servers[:2] {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("master %d has %q", i, keys)
		}
	}
	servers[2].Restart()
	bootstrapGroup(t, servers)
	servers[2].Kill()
	c := dial(t, serveHere(t, addresses(servers), "--bootstrap"))
	c.awaitMaster(t, 0, "voting")
}

func TestProcess_TimesWritesAndBeginsWithOneMaster(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	masters := "--masters=" + listOf(servers)
	bootstrapGroup(t, servers)
	if code, output := typed(t, []string{unhurried}, "check", masters, "--performance"); code != cli.ExitOK || !strings.Contains(output, "or more fits; the present ") {
		t.Errorf("code %d:\n%s", code, output)
	}
	servers[1].Kill()
	servers[2].RestartEmpty()
	if code, output := typed(t, nil, "bootstrap", masters, "--aged", "c"); code != cli.ExitOK || !strings.Contains(output, "master c: began an incarnation in 16 databases; it votes in 1m2.6s") {
		t.Errorf("code %d:\n%s", code, output)
	}
}

func TestProcess_BootstrapsAboveAFence(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	masters := "--masters=" + listOf(servers)
	for _, value := range []string{"4503599627370496", "4503595332403201"} {
		code, output := typed(t, nil, "bootstrap", masters, "--fence-above", value)
		if code != cli.ExitUsage || !strings.Contains(output, "fence-above = "+value+" (from --fence-above): leaves too few fences below 2^52, where they end; allowed: 1 to 4503595332403200; give the highest fence") {
			t.Errorf("%s: code %d:\n%s", value, code, output)
		}
	}
	above := time.Now().Add(time.Hour).UnixMicro()
	if code, output := typed(t, nil, "bootstrap", masters, fmt.Sprintf("--fence-above=%d", above)); code != cli.ExitOK || !strings.Contains(output, fmt.Sprintf("fences: all are above %d", above)) {
		t.Fatalf("code %d:\n%s", code, output)
	}
	c := dial(t, serveHere(t, addresses(servers)))
	c.ready(t)
	if got := c.ask(t, "DLOCK invoices 30000"); got != "*3" {
		t.Fatalf("DLOCK: %s", got)
	}
	reply := c.lines(t, 4) // length and token, validity, fence
	fence, err := strconv.ParseInt(strings.TrimPrefix(reply[3], ":"), 10, 64)
	if err != nil || fence <= above {
		t.Errorf("the first fence is %s, want more than %d", reply[3], above)
	}
}

func TestProcess_RunsACommandUnderALock(t *testing.T) {
	o := operate(t, "--embedded", "3", "--requirepass", "secret")
	o.await(t, "/readyz", http.StatusOK)
	environ := []string{"LOCK_CONNECT=" + o.port, "LOCK_PASSWORD=secret"}
	inner := os.Args[0] + ` lock --wait 0 invoices -- true; echo "inner $?"; echo "fence $LOCK_FENCE"; exit 3`
	code, output := typed(t, environ, "lock", "--ttl=60s", "invoices", "--", "sh", "-c", `export LOCK_PASSWORD=secret; `+inner)
	if code != 3 || !strings.Contains(output, "lock invoices: held by another client\ninner 75\n") || !strings.Contains(output, "fence 1") {
		t.Errorf("code %d:\n%s", code, output)
	}
	if code, output := typed(t, environ, "lock", "invoices", "--", "true"); code != 0 || output != "" {
		t.Errorf("it was not given back: code %d:\n%s", code, output)
	}
	if code, output := typed(t, environ[:1], "lock", "invoices", "--", "true"); code != cli.ExitRuntime || !strings.Contains(output, "NOAUTH") {
		t.Errorf("without a password: code %d:\n%s", code, output)
	}
}

func TestProcess_ShowsTheDaemonAsText(t *testing.T) {
	t.Parallel()
	o := operate(t, "--embedded", "3", "--requirepass", "secret")
	o.await(t, "/readyz", http.StatusOK)
	environ := []string{"LOCK_CONNECT=" + o.port, "LOCK_PASSWORD=secret"}
	inner := os.Args[0] + ` top --once; echo "top $?"; ` + os.Args[0] + ` top; echo "no terminal $?"`
	code, output := typed(t, environ, "lock", "--ttl=60s", "invoices", "--", "sh", "-c", `export LOCK_PASSWORD=secret; `+inner)
	for _, says := range []string{"masters vote", "embedded-1", "embedded-3", "voting", "granted ", "held 1", "WAITED-FOR", "invoices", "exclusive", "top 0\n", "use redlockd top --once\nno terminal 2\n"} {
		if !strings.Contains(output, says) {
			t.Errorf("%q is missing", says)
		}
	}
	if code != 0 || strings.Contains(output, "\x1b") || t.Failed() {
		t.Errorf("code %d:\n%s", code, output)
	}
	if code, output := typed(t, environ[:1], "top", "--once"); code != cli.ExitRuntime || !strings.Contains(output, "top: NOAUTH") {
		t.Errorf("without a password: code %d:\n%s", code, output)
	}
}
