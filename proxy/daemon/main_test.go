package daemon

// Tests of the whole program: as a function where that is enough, as a process
// where signals and exit codes are the question.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool/faulty"
)

// testTimeout bounds waits for what must happen; nothing is concluded from its length.
const testTimeout = 2 * time.Minute

// unhurried has masters that a busy machine delays count as present: the default
// master timeout of 100 ms does not.
const unhurried = "REDLOCKD_MASTER_TIMEOUT=5s"

// TestMain lets the test binary stand in for the daemon, see startProcess.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_MAIN") == "1" {
		os.Exit(Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	// Tests read files of the whole project and start the program in its root.
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// asDaemon is the environment in which the test binary is the daemon. The race
// detector would have each sleep for a second at its end.
func asDaemon() []string {
	return append(os.Environ(), "RUN_MAIN=1", unhurried, "REDLOCKD_DRAIN_GRACE=0", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
}

// awaits returns when the text has been written.
func awaits(t *testing.T, log *faulty.Log, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the process prints %q", text), func() bool { return strings.Contains(log.String(), text) }, log.String)
}

// startProcess runs the daemon as a process of its own on a free port and
// returns its address once it has printed it. Its log is a *faulty.Log at Stderr.
func startProcess(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	log := &faulty.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", log.String())
		}
	})
	return startProcessWithLog(t, log, args...)
}

// startProcessWithLog runs the daemon as startProcess does, and writes its log to stderr.
func startProcessWithLog(t *testing.T, stderr io.Writer, args ...string) (*exec.Cmd, string) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), 2*testTimeout) // one that does not end is killed
	t.Cleanup(cancel)
	process := exec.CommandContext(limit, os.Args[0], append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	process.Env = asDaemon()
	process.Stderr = stderr
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
	conn, err := net.DialTimeout("tcp", address, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

// renew gives the next exchange its time, however long the test already lasts.
func (c *client) renew(t *testing.T) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
}

// ask sends a line and returns the first line of the reply.
func (c *client) ask(t *testing.T, format string, args ...any) string {
	t.Helper()
	c.renew(t)
	if _, err := fmt.Fprintf(c, format+"\r\n", args...); err != nil {
		t.Fatal(err)
	}
	return c.line(t)
}

func (c *client) line(t *testing.T) string {
	t.Helper()
	c.renew(t)
	line, err := c.replies.ReadString('\n')
	if err != nil {
		t.Fatalf("reply %q: %v", line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

// hasReply waits a moment for something to read.
func (c *client) hasReply(t *testing.T) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := c.replies.Peek(1)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

// lock requests a lock until the embedded masters have been admitted.
func (c *client) lock(t *testing.T, key string) (token string) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		switch reply := c.ask(t, "DLOCK %s 60000", key); {
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
		err := run(ctx, []string{"--listen", "127.0.0.1:0", "--embedded", "3", "--log-level=error"}, []string{unhurried}, nil, writer, io.Discard)
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
	case <-time.After(testTimeout):
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
	for _, args := range [][]string{{"--listen", address}, {"--listen", "127.0.0.1:0", "--admin-listen", address}} {
		err = run(t.Context(), append(args, "--log-level=error"), nil, nil, io.Discard, io.Discard)
		if err == nil || errors.Is(err, configs.ErrInvalid) || !strings.Contains(err.Error(), address) ||
			!strings.Contains(err.Error(), "another address with --listen") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

// The log names no master: the daemon ends before it dials one.
func TestRun_ReportsAddressesAndFilesBeforeItDials(t *testing.T) {
	masters := strings.Join([]string{listenHere(t), listenHere(t), listenHere(t)}, ",")
	for _, args := range [][]string{
		{"--listen", listenHere(t)},
		{"--listen", "unix:/does/not/exist/s"},
		{"--listen", "tls:127.0.0.1:0", "--tls-cert", "/does/not/exist", "--tls-key", "/does/not/exist"},
	} {
		log := &faulty.Log{}
		if err := run(t.Context(), append(args, "--masters", masters), nil, nil, io.Discard, log); err == nil || strings.Contains(log.String(), "master=") {
			t.Errorf("%q: got %v, and in the log\n%s", args, err, log)
		}
	}
}

func TestRun_NamesTheMasterWhoseCertificateCannotBeRead(t *testing.T) {
	err := run(t.Context(), []string{"--masters", "a=rediss://h?ca=/does/not/exist,b,c"}, nil, nil, io.Discard, io.Discard)
	if !errors.Is(err, configs.ErrInvalid) || !strings.Contains(err.Error(), "a=h:6379") || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestProcess_ExitsWithTwoOnWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--embedded", "4"}, {"--nonsense"}, {"serve"}, {"bootstrap"}} {
		process := exec.Command(os.Args[0], args...)
		process.Env = asDaemon()
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

// A client that sends commands and does not read keeps the drain waiting; the daemon
// would go on and exit with 0, had the second signal no effect.
//
// Such a client is cut off after ten seconds and the drain is over, so a machine
// that needs more than that for the second signal has several tries; a daemon
// that ignores the signal exits with 0 in all of them.
func TestProcess_ExitsAtOnceWithOneOnTheSecondSignal(t *testing.T) {
	const tries = 5
	for range tries {
		err := twoSignals(t)
		switch exitCode(t, err) {
		case cli.ExitRuntime:
			return
		case cli.ExitOK: // the drain was over before
		default:
			t.Fatalf("got %v, want exit code %d", err, cli.ExitRuntime)
		}
	}
	t.Errorf("got exit code %d in %d tries, want %d", cli.ExitOK, tries, cli.ExitRuntime)
}

// twoSignals sends a daemon that cannot end its drain a second signal, and
// returns how it ended.
func twoSignals(t *testing.T) error {
	t.Helper()
	process, address := startProcess(t, "--drain-timeout", "10m")
	fillReplies(t, address)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitRefused(t, address)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return process.Wait()
}

// exitCode is how a process ended that has not been killed.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// fillReplies sends without reading until the daemon has replies that it cannot
// get rid of: it executes nothing more of this client, however often another one
// is answered. The sender ends with the connection.
func fillReplies(t *testing.T, address string) {
	t.Helper()
	const still = 20 // replies to another client in a row
	c, other := dial(t, address), dial(t, address)
	text := strings.Repeat("x", 32<<10)
	echo := []byte(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(text), text))
	var sent atomic.Int64
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		for {
			n, err := c.Write(echo)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-sending })
	executed := func() int {
		n, err := strconv.Atoi(other.info(t, "stats")["total_commands_processed"])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	end := time.Now().Add(testTimeout)
	for unchanged, before, left := 0, executed(), sent.Load(); unchanged < still; {
		now, leaves := executed(), sent.Load()
		if now == before+1 && leaves == left && now > still+2 { // INFO itself is one
			unchanged++
		} else {
			unchanged = 0
		}
		before, left = now, leaves
		if time.Now().After(end) {
			t.Fatalf("the daemon still executes: %d commands, %d bytes sent", now, leaves)
		}
	}
}

// waitRefused returns when the daemon has stopped accepting.
func waitRefused(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("the daemon still accepts clients")
}
