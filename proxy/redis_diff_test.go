package proxy

// redis_diff_test.go compares replies to unusual input with a real redis-server: the server
// with the real command table sends the same bytes. Commands that Redis would run for
// any client are unknown to this server.

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
	"redlockd/commands/conn"
	"redlockd/pool/faulty"
)

// alike is what both are to answer in the same bytes, and then close or not.
func alike() []string {
	long := strings.Repeat("x", 300)
	return []string{
		"\r\n\r\nPING\r\n", "*0\r\n*-1\r\n*-10\r\n",
		"*\r\n", "*3000000000\r\n", "*2147483648\r\n", "*9223372036854775808\r\n", "*9223372036854775807\r\n",
		"*18446744073709551617\r\n$4\r\nPING\r\n", "*+1\r\n", "* 1\r\n", "*01\r\n", "*1x\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*1\r\nfoo\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "*1\r\n\rfoo\r\n",
		"*1\r\n$-10\r\n", "*1\r\n$-1\r\n", "*1\r\n$2000000000\r\n", "*1\r\n$9223372036854775807\r\n",
		"*1\r\n$18446744073709551620\r\nPING\r\n", "*1\r\n$blabla\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$ 4\r\nPING\r\n",
		`set """test-key""" v` + "\r\n", `SET a"b c` + "\r\n", `PING "abc` + "\r\n", `PING "\xff\x00"` + "\r\n", "PING\tx\r\n",
		command("PING", "x", "y", "z"), command(""), command("FOO", "bar"), command("FOO\r\n-OK"), command(long, long, long),
		"SSH-2.0-x\r\n", "%1\r\n", "~1\r\n", ">1\r\n", "#t\r\n", "_\r\n",
		command("HELLO", "4"), command("HELLO", "0"), command("HELLO", "99999999999"), command("HELLO", "three"), command("HELLO", "3", "JUNK"),
		command("AUTH", "x"), command("AUTH", "a", "b", "c"),
		command("QUIT") + command("PING"),
	}
}

func TestRedisDiff_RepliesAreTheBytesOfARealRedis(t *testing.T) {
	redis := faulty.Start(t).Addr()
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	for _, input := range alike() {
		want, got := overhear(t, redis, input), overhear(t, s.Addrs()[0], input)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", shorten(input), shorten(got), shorten(want))
		}
	}
	if p := s.Stats().Panics; p != 0 {
		t.Errorf("%d panics were contained, want none", p)
	}
}

// overhear sends input, checks whether the connection was closed for it, and leaves.
func overhear(t *testing.T, address, input string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	if _, err := io.WriteString(conn, input+command("ECHO", "still here")+command("QUIT")); err != nil {
		t.Fatal(err)
	}
	// Redis closes with input unread, so that the end may be a reset.
	answers, err := io.ReadAll(conn)
	if len(answers) == 0 {
		t.Fatalf("%s: %s does not answer: %v", shorten(input), address, err)
	}
	return string(answers)
}

func TestRedisDiff_NoOperatorCommandIsForwarded(t *testing.T) {
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	c := dial(t, s)
	for _, name := range []string{"FCALL", "FUNCTION", "DEBUG", "SHUTDOWN", "MONITOR", "KEYS", "SCAN",
		"MODULE", "ACL", "REPLICAOF", "SYNC", "PSYNC", "BGSAVE", "LASTSAVE", "SLOWLOG", "MIGRATE", "RESTORE"} {
		c.send(command(name, "x"))
		c.expect("-ERR unknown command '" + name + "', with args beginning with: 'x' \r\n")
	}
	c.send(command("PING"))
	c.expect("+PONG\r\n")
}

// A deadline that moved with every byte would let a slow writer stay for ever.
func TestRedisDiff_ASlowCommandTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pace, limit = 5 * time.Millisecond, time.Second
		d := newDispatcher()
		_, dial := serveOnPipes(t, Options{CommandTimeout: limit}, d)
		c := dial()
		c.send("*2\r\n$4\r\nECHO\r\n$60000\r\n")
		bytes := 0
		for ; bytes < 60_000; bytes++ {
			time.Sleep(pace)
			if _, err := c.Write([]byte("x")); err != nil {
				break
			}
		}
		if most := int(limit / pace); bytes > most {
			t.Errorf("it was cut off after %d bytes, one every %v; want at most %d", bytes, pace, most)
		}
		c.expectEnd("")
		if len(d.started()) != 0 {
			t.Errorf("%q was run", d.started())
		}
	})
}

// A reset ends its own connection and no other, and the next client comes in.
func TestRedisDiff_AResetEndsItsOwnConnectionAlone(t *testing.T) {
	s := serve(t, Options{}, newDispatcher())
	stays := dial(t, s)
	for _, said := range []string{"", "*1\r\n$4\r\nPI", strings.Repeat(command("ECHO", strings.Repeat("x", 30_000)), 50)} {
		for range 20 {
			c := dial(t, s)
			c.send(said)
			if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		stays.send(command("PING"))
		stays.expect("+PONG\r\n")
		next := dial(t, s)
		next.send(command("PING") + command("QUIT"))
		next.expectEnd("+PONG\r\n+OK\r\n")
	}
	stays.send(command("QUIT"))
	stays.expectEnd("+OK\r\n")
	stays.Close()
	forgotten(t, s)
	if p := s.Stats().Panics; p != 0 {
		t.Errorf("%d panics were contained, want none", p)
	}
}
