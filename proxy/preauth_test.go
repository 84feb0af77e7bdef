package proxy

// preauth_test.go tests what a client gets before its login, byte for byte, from the
// real command table.

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/conn"
	"redlockd/proxy/guard"
	"redlockd/proxy/preauth"
)

// guarded is a table whose default user has the password pw.
func guarded(t testing.TB) *commands.Table {
	t.Helper()
	users, err := access.NewUsers([]access.User{access.Everything("default", "pw")})
	if err != nil {
		t.Fatal(err)
	}
	return commands.NewTable(commands.Deps{Inspect: &happenings{}, Users: users}, conn.Rows)
}

const (
	noAuth    = "-NOAUTH Authentication required. Send AUTH password, or AUTH user password.\r\n"
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	helloAuth = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"
)

func unauthCases() []hostile {
	auth, ping := command("AUTH", "pw"), command("PING")
	eleven := command("PING", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
	long := strings.Repeat("x", 16<<10)
	return []hostile{
		{"a command", ping, noAuth, false},
		{"an unknown command", command("FOO", "bar"), "-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n", false},
		{"HELLO", command("HELLO", "3"), helloAuth, false},
		{"a syntax error", command("AUTH", "a", "b", "c"), "-ERR syntax error\r\n", false},
		{"a wrong password", command("AUTH", "x"), wrongPass, false},
		{"two and the right one", command("AUTH", "x") + command("AUTH", "who", "x") + auth, wrongPass + wrongPass + "+OK\r\n", false},
		{"three", strings.Repeat(command("AUTH", "x"), 3) + auth, strings.Repeat(wrongPass, 3), true},
		{"three greetings of another protocol", "SSH-2.0-x\r\nSSH-2.0-x\r\nSSH-2.0-x\r\n", strings.Repeat("-ERR unknown command 'SSH-2.0-x', with args beginning with: \r\n", 3), true},
		{"ten words", command("PING", "2", "3", "4", "5", "6", "7", "8", "9", "10"), "-ERR wrong number of arguments for 'ping' command\r\n", false},
		{"eleven words", "*11\r\n", protocolError("unauthenticated multibulk length"), true},
		{"eleven words in a line", "1 2 3 4 5 6 7 8 9 10 11\r\n", protocolError("unauthenticated multibulk length"), true},
		{"more words than anybody may send", "*1025\r\n", protocolError("invalid multibulk length"), true},
		{"a long word", command("ECHO", long), noAuth, false},
		{"a longer word", "*2\r\n$4\r\nECHO\r\n$16385\r\n", protocolError("unauthenticated bulk length"), true},
		{"a longer word in a line", "ECHO " + long + "x\r\n", protocolError("unauthenticated bulk length"), true},
		{"a word longer than anybody may send", "*2\r\n$4\r\nECHO\r\n$65537\r\n", protocolError("invalid bulk length"), true},
		{"much in one command", "*9\r\n" + strings.Repeat("$16384\r\n"+long+"\r\n", 3) + "$16384\r\n",
			protocolError("too big command, at most 65536 bytes are allowed"), true},
		{"the login lifts the limits for what stands behind it", auth + ping + eleven + command("ECHO", long+"x"),
			"+OK\r\n+PONG\r\n-ERR wrong number of arguments for 'ping' command\r\n$16385\r\n" + long + "x\r\n", false},
		{"so does HELLO", command("HELLO", "2", "AUTH", "default", "pw") + eleven, "", false},
		{"RESET takes them away", auth + command("RESET") + ping, "+OK\r\n+RESET\r\n" + noAuth, false},
	}
}

func TestUnauth_RepliesAreExact(t *testing.T) {
	for _, row := range unauthCases() {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, Options{}, guarded(t)) // of its own: failures of one address are limited
			input, output := row.input, row.output
			if output == "" {
				output = "*14\r\n$6\r\nserver\r\n"
			}
			if !row.closed {
				input += command("QUIT")
				output += "+OK\r\n"
			}
			for _, pieces := range [][]string{{input}, split(input, 3)} {
				c := dial(t, s)
				for _, piece := range pieces {
					if _, err := io.WriteString(c.Conn, piece); err != nil {
						break // closed by what came before
					}
				}
				if row.output == "" {
					c.expect("*14\r\n$6\r\nserver\r\n")
					if rest, _ := io.ReadAll(c.in); !strings.HasSuffix(string(rest), "*0\r\n-ERR wrong number of arguments for 'ping' command\r\n+OK\r\n") {
						t.Errorf("got %s", shorten(string(rest)))
					}
					continue
				}
				c.expectEnd(output)
			}
			if p := s.Stats().Panics; p != 0 {
				t.Errorf("%d panics were contained, want none", p)
			}
		})
	}
}

// split cuts text into pieces of n bytes where it is short, else into a hundred.
func split(text string, n int) []string {
	n = max(n, len(text)/100)
	var pieces []string
	for len(text) > n {
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return append(pieces, text)
}

// An unauthenticated client that pipelines much at once is cut after a kilobyte of answers,
// whether it reads them or not.
func TestUnauth_IsClosedAfterTooManyReplies(t *testing.T) {
	s := serve(t, Options{}, guarded(t))
	c := dial(t, s)
	_, _ = io.WriteString(c.Conn, strings.Repeat(command("PING"), 20_000)) // may fail: it is cut off meanwhile
	got, _ := io.ReadAll(c.in)                                             // a reset is as good an end
	if n := len(got); n > preauth.MaxOutput {
		t.Errorf("got %d bytes of answers, want at most %d", n, preauth.MaxOutput)
	}
	forgotten(t, s)
}

// forgotten waits until the server has no connections.
func forgotten(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(testTimeout); s.Stats().Connected > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d clients are still there", s.Stats().Connected)
		}
	}
}

func TestUnauth_IsClosedWithoutAReplyAfterTheLoginTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := serveOnPipes(t, Options{LoginTimeout: time.Second}, guarded(t))
		user := dial()
		user.send(command("AUTH", "pw"))
		user.expect("+OK\r\n")
		for _, said := range []string{"", "PING\r\n", "*2\r\n$4\r\nAU", command("AUTH", "x")} {
			c, began := dial(), time.Now()
			c.send(said)
			got, err := io.ReadAll(c.in)
			if err != nil || strings.Contains(string(got), "+PONG") {
				t.Errorf("%q: got %q, %v", said, got, err)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("%q was listened to for %v, want a second", said, took)
			}
		}
		user.send(command("PING")) // it has outlived them all
		user.expect("+PONG\r\n")
	})
}

// A pool resets a connection and signs in again, however old it is.
func TestUnauth_GetsANewTimeoutAfterALogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := serveOnPipes(t, Options{LoginTimeout: time.Second}, guarded(t))
		c, witness := dial(), dial()
		c.send(command("AUTH", "pw"))
		c.expect("+OK\r\n")
		witness.expectEnd("") // the time of the first login is over
		c.send(command("RESET"))
		c.expect("+RESET\r\n")
		time.Sleep(time.Second / 2)
		c.send(command("PING"))
		c.expect(noAuth)
		c.send(command("AUTH", "pw") + command("PING"))
		c.expect("+OK\r\n+PONG\r\n")
	})
}

func TestUnauth_DoesNotExistWithoutPasswords(t *testing.T) {
	s := serve(t, Options{LoginTimeout: time.Millisecond}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	c := dial(t, s)
	c.send(command("PING"))
	c.expect("+PONG\r\n")
	for _, name := range []string{"x", "y"} { // AUTH is answered as by Redis
		c.send(command("AUTH", name))
		c.expect("-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n")
	}
	c.send(strings.Repeat(command("ECHO", "x"), 1000))
	c.expect(strings.Repeat("$1\r\nx\r\n", 1000))
}

func TestSession_ClosesWhenItsUserIsRemoved(t *testing.T) {
	digest := sha256.Sum256([]byte("pw"))
	user := func(name string) access.User {
		return access.User{Name: name, Passwords: [][sha256.Size]byte{digest}}
	}
	users, err := access.NewUsers([]access.User{user("a"), user("b")})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}, Users: users}, conn.Rows))
	a, b := dial(t, s), dial(t, s)
	for name, c := range map[string]*client{"a": a, "b": b} {
		c.send(command("AUTH", name, "pw"))
		c.expect("+OK\r\n")
	}
	if err := users.Replace([]access.User{user("b")}); err != nil {
		t.Fatal(err)
	}
	a.expectEnd("") // at once, without a command
	b.send(command("PING"))
	b.expect("+PONG\r\n")
}

// from is a socket with another remote address.
type from struct {
	net.Conn
	address *net.TCPAddr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// knock returns the reply to a connection from an address: "" if it is accepted.
func knock(t *testing.T, s *Server, ip string) (answer string, g *guard.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	reply := make(chan string, 1) // 1: the one answer
	go func() {
		text, _ := io.ReadAll(theirs)
		reply <- string(text)
	}()
	g = s.accept(from{ours, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}, "test")
	if g != nil {
		t.Cleanup(func() { g.Close() })
		return "", g
	}
	return <-reply, nil
}

func TestServer_InProtectedModeServesItsOwnMachineAlone(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, Options{LocalOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}, newDispatcher())
	for _, ip := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"} {
		if answer, g := knock(t, s, ip); g == nil {
			t.Errorf("%s is turned away: %q", ip, answer)
		}
	}
	for _, ip := range []string{"10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"} {
		answer, _ := knock(t, s, ip)
		if !strings.HasPrefix(answer, "-DENIED redlockd is in protected mode") || strings.Count(answer, "\r\n") != 1 || !strings.Contains(answer, "--requirepass") {
			t.Errorf("%s got %q", ip, answer)
		}
	}
	if n := s.Stats().Rejected; n != 3 {
		t.Errorf("%d rejected, want 3", n)
	}
	if line := log.String(); strings.Count(line, "connection rejected") != 1 || !strings.Contains(line, "10.0.0.1:1") || !strings.Contains(line, "--requirepass") {
		t.Errorf("the log has %q", line)
	}
}

func TestServer_BoundsTheConnectionsOfOneAddress(t *testing.T) {
	const full = "-ERR max number of clients reached: 2 of your address (max-clients-per-address)\r\n"
	s := serve(t, Options{MaxPerAddress: 2}, newDispatcher())
	var first *guard.Conn
	for i, step := range []struct{ ip, want string }{
		{"10.0.0.1", ""}, {"10.0.0.1", ""}, {"10.0.0.1", full}, {"10.0.0.2", ""},
		{"2001:db8::1", ""}, {"2001:db8::2", ""}, {"2001:db8::3", full}, {"2001:db8:0:1::1", ""}, {"::ffff:10.0.0.1", full},
	} {
		answer, g := knock(t, s, step.ip)
		if answer != step.want {
			t.Errorf("%d, %s: %q, want %q", i, step.ip, answer, step.want)
		}
		if first == nil {
			first = g
		}
	}
	first.Close()
	if answer, _ := knock(t, s, "10.0.0.1"); answer != "" {
		t.Errorf("a place that was left is not given again: %q", answer)
	}
	a, b := dial(t, s), dial(t, s)
	a.send("PING\r\n")
	a.expect("+PONG\r\n")
	b.send("PING\r\n")
	b.expect("+PONG\r\n")
	dial(t, s).expectEnd(full)
}

func TestServer_KeepsNoAddressesOfClosedConnections(t *testing.T) {
	s := serve(t, Options{MaxPerAddress: 2}, newDispatcher())
	for i := range 50 {
		_, g := knock(t, s, fmt.Sprintf("10.0.0.%d", i))
		g.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) != 0 {
		t.Errorf("%d addresses are kept", len(s.hosts))
	}
}

func TestUnauth_UsesHalfOfTheConnections(t *testing.T) {
	s := serve(t, Options{MaxClients: 6}, guarded(t))
	signIn := func() *client {
		c := dial(t, s)
		c.send(command("AUTH", "pw"))
		c.expect("+OK\r\n")
		return c
	}
	members := []*client{signIn(), signIn()}
	var silent []*client
	for i := range 9 {
		c := dial(t, s)
		c.send(command("PING")) // it is let in, and has not signed in
		c.expect(noAuth)
		if silent = append(silent, c); i >= 3 {
			silent[i-3].expectGone()
		}
	}
	members = append(members, signIn(), silent[7]) // one of the silent ones makes room
	silent[6].expectGone()
	members[3].send(command("AUTH", "pw"))
	members[3].expect("+OK\r\n")
	for _, c := range members {
		c.send(command("PING"))
		c.expect("+PONG\r\n")
	}
	if n := s.Stats().Rejected; n != 7 {
		t.Errorf("%d turned away, want 7", n)
	}
	for _, c := range append(members, silent[8]) {
		c.Close()
	}
	forgotten(t, s)
	if n := s.unauthClients.bytes(); n != 0 {
		t.Errorf("%d places are taken by nobody", n)
	}
}
