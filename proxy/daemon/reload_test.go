package daemon

// Tests of SIGHUP and of access control, on whole daemons.

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockd/configs"
	"redlockd/pool/faulty"
)

// usersFile writes users who may lock everything and have their name for a password.
func usersFile(t *testing.T, path string, names ...string) {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "[user.%s]\npassword-sha256 = \"%x\"\nkeys = [\"*\"]\ncommands = [\"lock\", \"read\", \"work\"]\n", name, sha256.Sum256([]byte(name)))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProcess_ReadsTheUsersAgainOnSIGHUPAndKeepsConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, path, "anna", "bert")
	process, address := startProcess(t, "--users", path)
	anna, bert := dial(t, address), dial(t, address)
	for name, c := range map[string]*client{"anna": anna, "bert": bert} {
		if reply := c.ask(t, "PING"); reply != "-NOAUTH Authentication required. Send AUTH password, or AUTH user password." {
			t.Fatal(reply)
		}
		if reply := c.ask(t, "AUTH %s %s", name, name); reply != "+OK" {
			t.Fatal(reply)
		}
	}
	anna.lock(t, "invoices")

	usersFile(t, path, "anna", "carla")
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	// The reload closes bert's connection, which sends nothing.
	if rest, err := io.ReadAll(bert.replies); err != nil || len(rest) > 0 {
		t.Errorf("bert's connection is not closed: %q, %v", rest, err)
	}
	if reply := anna.ask(t, "DUNLOCK invoices"); reply != ":1" {
		t.Errorf("anna's connection did not stay as it was: %s", reply)
	}
	carla := dial(t, address)
	if reply := carla.ask(t, "AUTH carla carla"); reply != "+OK" {
		t.Error(reply)
	}

	if err := os.WriteFile(path, []byte("[user.anna]\nheld = -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	log := process.Stderr.(*faulty.Log)
	awaits(t, log, "reload failed; keeping previous users") // a file that cannot be used changes nothing
	if reply := anna.ask(t, "PING"); reply != "+PONG" {
		t.Error(reply)
	}
	for login, want := range map[string]string{
		"anna anna": "+OK", "carla carla": "+OK", "bert bert": "-WRONGPASS invalid username-password pair or user is disabled.",
	} {
		if reply := dial(t, address).ask(t, "AUTH %s", login); reply != want {
			t.Errorf("AUTH %s after a reload that failed: %s, want %s", login, reply, want)
		}
	}
}

func TestProcess_WithAPasswordAnswersAsRedis(t *testing.T) {
	t.Setenv("REDLOCKD_REQUIREPASS", "S3CR3T")
	_, address := startProcess(t)
	c := dial(t, address)
	for _, step := range [][2]string{
		{"DLOCK a 1000", "-NOAUTH Authentication required. Send AUTH password, or AUTH user password."},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH S3CR3T", "+OK"},
	} {
		if reply := c.ask(t, "%s", step[0]); reply != step[1] {
			t.Errorf("%s: %s", step[0], reply)
		}
	}
	c.lock(t, "a")
	if reply := c.ask(t, "CONFIG GET requirepass"); reply != "*2" {
		t.Fatal(reply)
	}
	for _, want := range []string{"$11", "requirepass", "$3", "***"} {
		if line := c.line(t); line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

// signed is a connection of a user of usersFile, on RESP3.
func signed(t *testing.T, address, name string) *client {
	t.Helper()
	c := dial(t, address)
	c.send(t, "HELLO 3 AUTH %s %s", name, name)
	c.skipHello(t)
	return c
}

// skipHello reads the replies up to an expected one.
func (c *client) skipHello(t *testing.T) {
	t.Helper()
	c.send(t, "ECHO said-hello")
	for c.line(t) != "said-hello" {
	}
}

// closed reads to the end of the connection.
func (c *client) closed(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(c.replies)
	if err != nil {
		t.Fatalf("the connection is not closed: %v, after %q", err, rest)
	}
	return string(rest)
}

func hangUp(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// The connections of a removed user end at once: those that are idle or subscribed, those
// that wait, and one that holds, with the reason. What is held runs out.
func TestProcess_AReloadEndsTheConnectionsOfAUserWhoIsRemoved(t *testing.T) {
	t.Parallel()
	const reason = "user 'bert' was removed or disabled; this connection is closed"
	path := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, path, "anna", "bert")
	process, address := startProcess(t, "--users", path, "--master-timeout", "1s")
	anna := signed(t, address, "anna")
	anna.lock(t, "taken")
	anna.lock(t, "lock:taken") // what python-redis-lock calls taken
	anna.send(t, "DWORK job 30000 MAX 9")
	anna.lines(t, 8)
	idle, listener, holder := signed(t, address, "bert"), signed(t, address, "bert"), signed(t, address, "bert")
	listener.send(t, "SUBSCRIBE dlock:taken")
	listener.lines(t, 6)
	holder.send(t, "DLOCK long 60000 HOLD")
	token := holder.lines(t, 5)[2]
	holder.send(t, "DLOCK short 3000 HOLD")
	holder.lines(t, 5)
	waits := []string{"DLOCK taken 30000 WAIT 60000", "DMLOCK 30000 2 free taken WAIT 60000", "BLPOP lock-signal:taken 60", "DWORK job 30000 MAX 9 WAIT 60000"}
	var blocked []*client
	for _, command := range waits {
		c := signed(t, address, "bert")
		c.send(t, "%s", command)
		blocked = append(blocked, c)
	}
	last := ""
	eventually(t, "bert's connections wait", func() bool {
		last = anna.info(t, "locks")["waiters"]
		return last == fmt.Sprint(len(waits))
	}, func() string { return last })

	usersFile(t, path, "anna")
	hangUp(t, process)
	for name, c := range map[string]*client{"idle": idle, "subscribed": listener} {
		if got := c.closed(t); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for i, c := range blocked {
		if got := c.closed(t); got != "-NOPERM "+reason+"\r\n" {
			t.Errorf("%s: %q", waits[i], got)
		}
	}
	pushed := strings.Split(holder.closed(t), "\r\n")
	if !slices.Contains(pushed, token) || pushed[0] != ">4" || pushed[2] != "dlock-lost" || pushed[8] != reason || len(pushed) != 19 {
		t.Errorf("pushed %q", pushed)
	}
	if got := anna.ask(t, "DLOCK long 1000"); got != "_" {
		t.Errorf("the lock of a removed user was released: %s", got)
	}
	anna.send(t, "DLOCK short 1000 WAIT 60000") // the lock ends with its ttl
	if got := anna.line(t); got != "*3" {
		t.Errorf("the lock of a removed user is still renewed: %s", got)
	}
}

// dialTLS is a client with a certificate of its own.
func dialTLS(t *testing.T, address string, servers, of *faulty.Authority, name string) *client {
	t.Helper()
	certificate := of.Issue(name)
	shown, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(readFile(t, servers.CAFile))
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "daemon.test", Certificates: []tls.Certificate{shown}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestProcess_AReloadEndsConnectionsWhoseCertificateTheNewCADidNotSign(t *testing.T) {
	servers, former, latter := faulty.NewAuthority(t), faulty.NewAuthority(t), faulty.NewAuthority(t)
	mine, path := servers.Issue("daemon.test"), filepath.Join(t.TempDir(), "clients.pem")
	both := slices.Concat(readFile(t, former.CAFile), readFile(t, latter.CAFile))
	if err := os.WriteFile(path, both, 0o600); err != nil {
		t.Fatal(err)
	}
	process, addresses := startProcess(t, "--listen", "tls:127.0.0.1:0", "--master-timeout", "1s",
		"--tls-cert", mine.CertFile, "--tls-key", mine.KeyFile, "--tls-ca", path, "--tls-client-auth", "required")
	plain, address, _ := strings.Cut(addresses, ", tls:")
	old, renewed, watcher := dialTLS(t, address, servers, former, "old"), dialTLS(t, address, servers, latter, "new"), dial(t, plain)
	renewed.lock(t, "a")
	old.send(t, "HELLO 3")
	old.skipHello(t)
	old.send(t, "DLOCK b 60000 HOLD")
	old.lines(t, 5)

	if err := os.WriteFile(path, readFile(t, latter.CAFile), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t, process)
	if got := old.closed(t); !strings.Contains(got, "dlock-lost") || !strings.Contains(got, "the client's certificate is no longer accepted") {
		t.Errorf("pushed %q", got)
	}
	if got := watcher.ask(t, "DLOCK b 1000"); got != "$-1" {
		t.Errorf("the lock was released: %s", got)
	}
	if got := renewed.ask(t, "DUNLOCK a"); got != ":1" {
		t.Errorf("the connection with the new certificate: %s", got)
	}
}

// The users file may change while the daemon starts. A SIGHUP of that time ends no daemon, and is not lost.
func TestProcess_ReadsTheUsersAgainAfterASIGHUPDuringItsStart(t *testing.T) {
	path, socket := filepath.Join(t.TempDir(), "users.toml"), filepath.Join(t.TempDir(), "socket")
	usersFile(t, path, "anna")
	var masters []string
	for i := range 3 { // they answer nothing, which lengthens the start
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
		masters = append(masters, fmt.Sprintf("%c=%s", 'a'+i, silent.Addr()))
	}
	limit, cancel := context.WithTimeout(context.Background(), 2*testTimeout)
	t.Cleanup(cancel)
	process := exec.CommandContext(limit, os.Args[0], "--listen", "unix:"+socket, "--users", path, "--masters", strings.Join(masters, ","))
	log := &faulty.Log{}
	process.Env, process.Stderr = asDaemon(), log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // of a process that has ended: an error, rightly ignored
		_ = process.Wait()
	})
	eventually(t, "it listens", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, log.String)
	usersFile(t, path, "bert")
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	awaits(t, log, "users reloaded")
}

func TestOnHangup_StopsThoughAFileIsNeverRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "users.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var log faulty.Log
	signals := make(chan os.Signal, 1) // one reload
	stop := onHangup(signals, &reloader{config: configs.Config{UsersFile: pipe}, logger: newLogger(configs.Config{}, &log)})
	signals <- syscall.SIGHUP
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	stop()
	awaits(t, &log, "a reload has not ended")
	writer.Close()
	awaits(t, &log, "reload failed; keeping previous users")
}
