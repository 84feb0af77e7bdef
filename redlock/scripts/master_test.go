package scripts_test

// one master to run lock scripts on, embedded or real.

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	inproc "redlockd/pool/embedded"
	"redlockd/pool/faulty"
	"redlockd/proxy/resp"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/scripts"
)

// pureMaster is a connection to a master of some kind.
type pureMaster struct {
	t      *testing.T
	conn   net.Conn
	in     *resp.Reader
	before func() // moves the master's clock
	// exact: the master tells when a key ends. One before Redis 7.0 computes it
	// from two looks at its clock, between which it may be stopped.
	exact bool
}

// pureWall is a clock that only moves when it is told to.
type pureWall struct {
	mu  sync.Mutex
	now time.Time
}

func (w *pureWall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func newPureMaster(t *testing.T, conn net.Conn, err error) *pureMaster {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &pureMaster{t: t, conn: conn, in: resp.NewReader(conn), before: func() {}, exact: true}
}

func pureEmbedded(t *testing.T) *pureMaster {
	w := &pureWall{now: time.UnixMilli(1_800_000_000_003)}
	master := inproc.NewMaster(w.time)
	t.Cleanup(master.Close)
	conn, err := master.Dial()
	m := newPureMaster(t, conn, err)
	m.before = master.Advance
	return m
}

func pureReal(t *testing.T) *pureMaster {
	conn, err := net.Dial("tcp", faulty.Start(t).Addr())
	m := newPureMaster(t, conn, err)
	_, m.exact = m.do("PEXPIRETIME", "none").(int64) // the server may be one before 7.0
	return m
}

// pureOld is a real server that refuses what Redis 6.2 does not know.
func pureOld(t *testing.T) *pureMaster {
	m := pureReal(t)
	if !m.exact {
		return m
	}
	m.do("ACL", "SETUSER", "old", "on", ">pw", "~*", "+@all", "-pexpiretime", "-expiretime")
	m.do("AUTH", "old", "pw")
	m.exact = false
	return m
}

// do says a command; the reply is int64, string, nil, []any or, for an error
// that is no surprise to the caller, a text that begins with "-".
func (m *pureMaster) do(words ...any) any {
	m.t.Helper()
	m.before()
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = fmt.Sprint(w)
	}
	if _, err := m.conn.Write(resp.AppendCommand(nil, texts...)); err != nil {
		m.t.Fatal(err)
	}
	reply, err := m.in.ReadValue()
	if err != nil {
		m.t.Fatal(err)
	}
	if reply.Kind == '-' {
		return "-" + reply.Text
	}
	return reply.Any()
}

// now is the master's clock in ms.
func (m *pureMaster) now() int64 {
	m.t.Helper()
	parts := m.do("TIME").([]any)
	s, _ := strconv.ParseInt(parts[0].(string), 10, 64)
	us, _ := strconv.ParseInt(parts[1].(string), 10, 64)
	return s*1000 + us/1000
}

// reply evaluates a lock script on the key "lock".
func (m *pureMaster) reply(file string, args ...any) any {
	m.t.Helper()
	if file == "extend" {
		args = append(args, "alone")
	}
	return m.replyOn(file, []string{"lock"}, args...)
}

// replyOn evaluates a lock script on these keys.
func (m *pureMaster) replyOn(file string, keys []string, args ...any) any {
	m.t.Helper()
	text, err := scripts.Text(file)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.evaluate(string(text), keys, args...)
}

func (m *pureMaster) evaluate(text string, keys []string, args ...any) any {
	m.t.Helper()
	words := []any{"EVAL", text, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	return m.do(append(words, args...)...)
}

// run is reply for scripts that answer a number.
func (m *pureMaster) run(file string, args ...any) int64 {
	m.t.Helper()
	reply := m.reply(file, args...)
	n, ok := reply.(int64)
	if !ok {
		m.t.Fatalf("%s%v answered %v", file, args, reply)
	}
	return n
}

// holds is what stands at the key: its type, value and end, "none" for nothing.
func (m *pureMaster) holds() string {
	m.t.Helper()
	kind := m.do("TYPE", "lock").(string)
	if kind == "none" {
		return kind
	}
	value := ""
	if kind == "string" {
		value = m.do("GET", "lock").(string)
	}
	return fmt.Sprintf("%s %s ends %d", kind, value, m.end())
}

// end is when the key expires, ms of the master's clock; −1 = never.
func (m *pureMaster) end() int64 {
	m.t.Helper()
	return m.endOf("lock")
}

func (m *pureMaster) endOf(key string) int64 {
	m.t.Helper()
	if m.exact {
		return m.do("PEXPIRETIME", key).(int64)
	}
	return m.do("EVAL", redlocktest.EndScript, 1, key).(int64)
}

// put makes the key hold a token until an end; 0 = for ever.
func (m *pureMaster) put(token string, end int64) {
	m.t.Helper()
	m.do("DEL", "lock")
	words := []any{"SET", "lock", token}
	if end > 0 {
		words = append(words, "PXAT", end)
	}
	if got := m.do(words...); got != "OK" {
		m.t.Fatalf("%v: %v", words, got)
	}
}
