// Tests of the whole program: as a function where that is enough, as a process
// where signals and exit codes are the question.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockd/commands/cli"
	"redlockd/configs"
)

// patience is how long a test waits for what comes at once unless it is broken.
const patience = 30 * time.Second

// TestMain lets the test binary stand in for the daemon, see startProcess.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_MAIN") == "1" {
		main()
	}
	os.Exit(m.Run())
}

// startProcess runs the daemon as a process of its own on a free port and
// returns its address once it has said so.
func startProcess(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience) // one that does not end is killed
	t.Cleanup(cancel)
	process := exec.CommandContext(limit, os.Args[0], append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	process.Env = append(os.Environ(), "RUN_MAIN=1")
	var log bytes.Buffer
	process.Stderr = &log
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // of a process that has ended: an error, rightly ignored
		_ = process.Wait()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", log.String())
		}
	})
	return process, readAddress(t, stdout)
}

// readAddress waits for the first line of the banner.
func readAddress(t *testing.T, stdout io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("no banner: %q, %v", line, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "redlockd listens on "))
}

// client is one connection that speaks inline commands.
type client struct {
	net.Conn
	replies *bufio.Reader
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

// ask sends a line and returns the first line of the reply.
func (c *client) ask(t *testing.T, format string, args ...any) string {
	t.Helper()
	if _, err := fmt.Fprintf(c, format+"\r\n", args...); err != nil {
		t.Fatal(err)
	}
	return c.line(t)
}

func (c *client) line(t *testing.T) string {
	t.Helper()
	line, err := c.replies.ReadString('\n')
	if err != nil {
		t.Fatalf("reply %q: %v", line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

// lock asks for a lock until the embedded masters have been admitted.
func (c *client) lock(t *testing.T, key string) (token string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		switch reply := c.ask(t, "DLOCK %s 30000", key); {
		case reply == "*3":
			c.line(t) // the token's length
			token = c.line(t)
			c.line(t) // validity
			c.line(t) // fence
			return token
		case !strings.HasPrefix(reply, "-NOQUORUM") || time.Now().After(end):
			t.Fatalf("DLOCK %s: %s", key, reply)
		}
	}
}

func TestRun_LocksOnEmbeddedMastersAndStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1) // run reports once
	go func() {
		err := run(ctx, []string{"--listen", "127.0.0.1:0", "--embedded", "3", "--log-level=error"}, nil, writer, io.Discard)
		writer.Close()
		ended <- err
	}()
	banner := bufio.NewReader(reader)
	address := readAddress(t, banner)
	rest := make(chan string, 1) // drained at once, for run blocks on a full pipe
	go func() {
		text, _ := io.ReadAll(banner)
		rest <- string(text)
	}()

	c := dial(t, address)
	token := c.lock(t, "invoices")
	for _, step := range [][2]string{
		{"DLOCK invoices 30000", "$-1"},
		{"DUNLOCK invoices not-the-token", ":0"},
		{"DUNLOCK invoices " + token, ":1"},
	} {
		if got := c.ask(t, "%s", step[0]); got != step[1] {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("run ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("run goes on although its context has ended")
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port still answers")
	}
	if text := <-rest; !strings.Contains(text, "3 embedded masters") || !strings.Contains(text, "DLOCK invoices 30000") {
		t.Errorf("the banner goes on with %q", text)
	}
}

func TestRun_ReportsAnAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	err = run(t.Context(), []string{"--listen", address, "--log-level=error"}, nil, io.Discard, io.Discard)
	if err == nil || errors.Is(err, configs.ErrInvalid) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}

func TestRun_NamesTheMasterWhoseCertificateCannotBeRead(t *testing.T) {
	err := run(t.Context(), []string{"--masters", "a=rediss://h?ca=/does/not/exist,b,c"}, nil, io.Discard, io.Discard)
	if !errors.Is(err, configs.ErrInvalid) || !strings.Contains(err.Error(), "a=h:6379") || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestProcess_ExitsWithTwoOnWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--embedded", "4"}, {"--nonsense"}, {"serve"}, {"bootstrap"}} {
		process := exec.Command(os.Args[0], args...)
		process.Env = append(os.Environ(), "RUN_MAIN=1")
		output, err := process.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUsage || !strings.HasPrefix(string(output), "redlockd: ") {
			t.Errorf("%q: %v with %q", args, err, output)
		}
	}
}

func TestProcess_DrainsAndExitsWithZeroOnTheFirstSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		process, address := startProcess(t)
		c := dial(t, address)
		c.lock(t, "invoices")
		if err := process.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("%s: %v", signal, err)
		}
		if _, err := c.replies.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection was not closed properly: %v", signal, err)
		}
	}
}

// A client that asks and does not read keeps the drain waiting; the daemon
// would go on and exit with 0, had the second signal no effect.
func TestProcess_ExitsAtOnceWithOneOnTheSecondSignal(t *testing.T) {
	process, address := startProcess(t, "--drain-timeout", "10m")
	c := dial(t, address)
	fillReplies(t, c)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitRefused(t, address)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := process.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitRuntime {
		t.Errorf("got %v, want exit code %d", err, cli.ExitRuntime)
	}
}

// fillReplies sends until nobody takes any more: the daemon has replies that it
// cannot get rid of.
func fillReplies(t *testing.T, c *client) {
	t.Helper()
	text := strings.Repeat("x", 32<<10)
	echo := []byte(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(text), text))
	for {
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(echo); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// waitRefused returns when the daemon has stopped accepting.
func waitRefused(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("the daemon still accepts clients")
}
