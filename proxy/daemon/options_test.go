package daemon

// Tests of what the parts get of the configuration.

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
)

func load(t *testing.T, args ...string) configs.Config {
	t.Helper()
	config, err := configs.Load(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestOptions_IDsAreVolatileOnEmbeddedMastersAndByTheOperatorsChoice(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--ids-durability=on"}, true},
		{[]string{"--masters=a,b,c"}, false},
		{[]string{"--masters=a,b,c", "--ids-durability=off"}, true},
		{[]string{"--masters=a,b,c", "--assume-durable"}, false},
	} {
		config := load(t, c.args...)
		if got := lockerOptions(config, newLogger(config, io.Discard)).VolatileIDs; got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
}

func TestOptions_AssumeDurableReachesThePool(t *testing.T) {
	for _, want := range []bool{false, true} {
		config := load(t, "--masters=a,b,c")
		config.AssumeDurable = want
		options, err := poolOptions(config, newLogger(config, io.Discard))
		if err != nil || options.AssumeDurable != want {
			t.Errorf("%t: %+v %v", want, options, err)
		}
	}
}

func TestWarnings_ReportThatTheCountersOfEmbeddedMastersEndWithTheProcess(t *testing.T) {
	if got := strings.Join(warnings(load(t), manyFiles), "\n"); !strings.Contains(got, "counters and work end with this process") {
		t.Errorf("got %q", got)
	}
	if got := warnings(load(t, "--masters=a,b,c"), manyFiles); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(warnings(load(t, "--masters=a,b,c", "--ids-durability=off"), manyFiles), "\n"); !strings.Contains(got, "ids may be given a second time") {
		t.Errorf("got %q", got)
	}
}

func TestOptions_ProtectTheDaemonThatNeedsNoLogin(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, users, "anna")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--protected-mode=off"}, false},
		{[]string{"--requirepass=x"}, false},
		{[]string{"--users", users}, false},
	} {
		config := load(t, c.args...)
		if got := proxyOptions(config, time.Second, nil).LocalOnly; got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
		if made, err := clientUsers(config); err != nil || (made != nil) != needsLogin(config) {
			t.Errorf("%q: users %v, %v", c.args, made, err)
		}
	}
}

func TestWarnings_ReportThatProtectedModeRejectsOtherMachines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"--listen=:7379"}, true},
		{[]string{"--listen=127.0.0.1:1,10.0.0.1:1"}, true},
		{[]string{"--listen=127.0.0.1:1,[::1]:1,localhost:1,unix:/run/r"}, false},
		{[]string{"--listen=:7379", "--protected-mode=off"}, false},
		{[]string{"--listen=:7379", "--requirepass=x"}, false},
	} {
		got := strings.Contains(strings.Join(warnings(load(t, c.args...), manyFiles), "\n"), "only clients on this machine are served")
		if got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
}

func TestOptions_NameTheInvalidUser(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, users, "anna")
	config := load(t, "--users", users)
	config.Users[0].Keys = []string{"a[b]"}
	if _, err := clientUsers(config); err == nil || !strings.Contains(err.Error(), users) || !strings.Contains(err.Error(), `user "anna" has the key pattern`) {
		t.Errorf("got %v", err)
	}
}

func TestJobs_SayWhatToDoAfterAnInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	job := changing(onMasters(io.Discard, func(ctx context.Context, _ pool.Options, _ cli.CommandLine, _ io.Writer) error {
		cancel()
		return ctx.Err()
	}))
	err := job(ctx, load(t, "--masters", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"), cli.CommandLine{}, io.Discard)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "run the same command again") {
		t.Error(err)
	}
}

func TestAddressHint_TellsWhatToDo(t *testing.T) {
	for _, c := range []struct{ address, hint string }{
		{"192.0.2.1:0", "no interface of this machine has it; choose another address"}, // a network for documents
		{listenHere(t), "stop the process that listens there"},
	} {
		_, err := net.Listen("tcp", c.address)
		if err = withAddressHint(err); err == nil || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%s: %v, want %q", c.address, err, c.hint)
		}
	}
}

// listenHere is an address that is in use until the test ends.
func listenHere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
