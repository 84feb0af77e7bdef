package embedded

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/proxy/resp"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wall is a clock that the test sets.
type wall struct {
	mu  sync.Mutex
	now time.Time
}

func newWall() *wall { return &wall{now: time.UnixMilli(1_800_000_000_123)} }

func (w *wall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *wall) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// client sends one command after another; the clock moves before each, as it
// does before every flush.
type client struct {
	t      *testing.T
	master *Master
	conn   net.Conn
	in     *resp.Reader
}

func dial(t *testing.T, m *Master) *client {
	t.Helper()
	conn, err := m.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, master: m, conn: conn, in: resp.NewReader(conn)}
}

func encode(words ...string) string { return string(resp.AppendCommand(nil, words...)) }

// say returns the reply as text: "nil", a number, a string, or words of a list.
func (c *client) say(words ...string) string {
	c.t.Helper()
	c.master.Advance()
	if _, err := c.conn.Write([]byte(encode(words...))); err != nil {
		c.t.Fatal(err)
	}
	return c.read()
}

func (c *client) read() string {
	c.t.Helper()
	reply, err := c.in.ReadValue()
	if err != nil {
		c.t.Fatal(err)
	}
	return asText(reply)
}

func asText(v resp.Value) string {
	switch v.Kind {
	case '_':
		return "nil"
	case ':':
		return strconv.FormatInt(v.Int, 10)
	case '*':
		words := make([]string, len(v.Items))
		for i := range v.Items {
			words[i] = asText(v.Items[i])
		}
		return strings.Join(words, " ")
	}
	return strings.TrimSpace(v.Text)
}

func (c *client) want(want string, words ...string) {
	c.t.Helper()
	if got := c.say(words...); got != want {
		c.t.Errorf("%q: %q, want %q", words, got, want)
	}
}

func newClient(t *testing.T) (*client, *wall) {
	t.Helper()
	w := newWall()
	m := NewMaster(w.time)
	t.Cleanup(m.Close)
	return dial(t, m), w
}

func TestEmbedded_AKeyExpiresByTheClockAndNotBefore(t *testing.T) {
	c, w := newClient(t)
	end := w.time().Add(1000 * time.Millisecond).UnixMilli()
	c.want("OK", "SET", "key", "token", "NX", "PXAT", strconv.FormatInt(end, 10))
	c.want("nil", "SET", "key", "other", "NX", "PXAT", strconv.FormatInt(end, 10))
	w.move(999 * time.Millisecond)
	c.want("token", "GET", "key")
	c.want("1", "PTTL", "key")
	w.move(time.Millisecond)
	c.want("nil", "GET", "key")
	c.want("OK", "SET", "key", "other", "NX", "PX", "10")
}

func TestEmbedded_ACopyWhoseTimeIsOverLeavesNothing(t *testing.T) {
	c, w := newClient(t)
	c.say("SET", "key", "token", "NX", "PXAT", strconv.FormatInt(w.time().UnixMilli()-1, 10))
	c.want("0", "EXISTS", "key")
}

func TestEmbedded_TimeAndExpiryAgreeAtEveryMoment(t *testing.T) {
	c, w := newClient(t)
	end := w.time().UnixMilli() + 50_000
	c.want("OK", "SET", "key", "token", "PXAT", strconv.FormatInt(end, 10))
	for range 300 {
		w.move(137 * time.Millisecond)
		var s, us, left int64
		fmt.Sscan(c.say("TIME"), &s, &us)
		fmt.Sscan(c.say("PTTL", "key"), &left)
		if now := s*1000 + us/1000; now != w.time().UnixMilli() || now+left != end {
			t.Fatalf("TIME %d, clock %d, PTTL %d, end %d", now, w.time().UnixMilli(), left, end)
		}
		c.want(strconv.FormatInt(end, 10), "PEXPIRETIME", "key")
	}
}

func TestEmbedded_AScriptSeesTheSameTime(t *testing.T) {
	c, w := newClient(t)
	w.move(12345 * time.Microsecond)
	want := fmt.Sprintf("%d %d", w.time().Unix(), w.time().Nanosecond()/1000)
	c.want(want, "EVAL", "return redis.call('TIME')", "0")
}

func TestEmbedded_AClockSetBackRevivesNothingAndEndsNothing(t *testing.T) {
	c, w := newClient(t)
	c.want("OK", "SET", "short", "token", "PX", "100")
	c.want("OK", "SET", "long", "token", "PX", "5000")
	w.move(200 * time.Millisecond)
	c.want("nil", "GET", "short")
	w.move(-time.Hour)
	c.want(fmt.Sprintf("%d %d", w.time().Unix(), w.time().Nanosecond()/1000), "TIME")
	c.want("nil", "GET", "short")
	c.want("token", "GET", "long")
	w.move(4799 * time.Millisecond)
	c.want("token", "GET", "long")
	w.move(time.Millisecond)
	c.want("nil", "GET", "long")
}

func TestEmbedded_MastersAreIndependentAndNamedApart(t *testing.T) {
	w := newWall()
	group := New(5, w.time)
	defer group.Close()
	ids := map[string]bool{}
	for i := range 5 {
		ids[group.At(i).RunID] = true
		if len(group.At(i).RunID) != 40 {
			t.Errorf("run id %q, want 40 digits", group.At(i).RunID)
		}
	}
	if len(ids) != 5 {
		t.Errorf("%d run ids of 5 masters", len(ids))
	}
	dial(t, group.At(0)).want("OK", "SET", "key", "token")
	dial(t, group.At(1)).want("nil", "GET", "key")
}

func TestEmbedded_AFlushLongerThanAnyBufferIsAnsweredInOrder(t *testing.T) {
	c, _ := newClient(t)
	const commands = 2000
	var b strings.Builder
	for i := range commands {
		b.WriteString(encode("ECHO", strconv.Itoa(i)+strings.Repeat("x", 100)))
	}
	if _, err := c.conn.Write([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
	for i := range commands {
		if got := c.read(); !strings.HasPrefix(got, strconv.Itoa(i)+"x") {
			t.Fatalf("answer %d is %.20q", i, got)
		}
	}
}

func TestEmbedded_AConnectionOutlivesItsMasterOnlyAsAnError(t *testing.T) {
	c, _ := newClient(t)
	c.want("PONG", "PING")
	c.master.Close()
	if _, err := c.in.ReadByte(); err == nil {
		t.Error("read from a master that is closed")
	}
	if err := c.conn.Close(); err != nil {
		t.Logf("closing afterwards: %v", err)
	}
	if _, err := c.conn.Write([]byte("x")); err == nil {
		t.Error("wrote to a connection that is closed")
	}
}
