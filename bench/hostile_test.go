//go:build linux

// The cost of a crowd of clients: ten thousand idle clients, and a thousand
// unauthenticated clients that attack, measured by the memory of the daemon as the kernel
// reports it. An authenticated client works beside the attackers. Memory has ceilings
// here, latencies are only logged.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	idleClients    = 10_000
	idleCeiling    = 20_000 // bytes each
	hostileClients = 1_000
	hostileCeiling = 40_000 // bytes each, at the worst moment
	firstComers    = 500    // connections or turns before the first weighing
	spareFiles     = 500    // descriptors for everything but the clients
	sampleInterval = 50 * time.Millisecond
	dripInterval   = 100 * time.Millisecond // between two bytes of a slow writer
	restTime       = time.Second            // between two visits: two cores carry the crowd, the daemon and the masters
	lineLength     = 256 << 10              // bytes of a line that is four times too long
	password       = "only the invited know it"
	// The daemon closes a connection without a login or a whole command within 10 s.
	visitTimeout = 20 * time.Second
)

func TestCrowd_AnIdleConnectionCostsAtMost20kB(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < idleClients+spareFiles {
		t.Fatalf("this test opens %d connections, %d files are allowed; try ulimit -n %d", idleClients, limit.Cur, 2*idleClients)
	}
	_, options := realMasters(t, 5)
	d := launch(t, append(options, "--max-clients", "20000", "--max-clients-per-address", "0", "--max-connects", "0")...)
	assemble(t, d, firstComers)
	before := occupied(t, d)
	assemble(t, d, idleClients)
	each := (occupied(t, d) - before) / idleClients
	t.Logf("%d bytes for each of %d idle connections, beside %d kB without them", each, idleClients, before/1000)
	if each > idleCeiling {
		t.Errorf("%d bytes per idle connection, at most %d are allowed", each, idleCeiling)
	}
}

// assemble opens n connections that stay until the test ends. The daemon has replied on each.
func assemble(t *testing.T, d *daemon, n int) {
	t.Helper()
	answer := make([]byte, len("+PONG\r\n"))
	for range n {
		conn, err := net.Dial("tcp", d.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(ioTimeout))
		if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "+PONG\r\n" {
			t.Fatalf("PING: %q, %v", answer, err)
		}
	}
}

// occupied is how much memory the daemon has of the machine, in bytes.
func occupied(t *testing.T, d *daemon) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	line, _, _ := bytes.Cut(rest, []byte(" kB"))
	kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		t.Fatalf("VmRSS of the daemon: %v in\n%s", err, status)
	}
	return kilobytes << 10
}

// ticksPerSecond is the unit of the kernel's figures for processors, on every Linux.
const ticksPerSecond = 100

// ticks is how long the daemon has been at work, in the kernel and outside.
func ticks(t *testing.T, d *daemon) int64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.process.pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the name may hold blanks
	fields := bytes.Fields(rest)
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatalf("times of the daemon: %v in %s", err, stat)
	}
	return user + system
}

func TestCrowd_OfAThousandHostilesNeitherHarmsNorFattensTheDaemon(t *testing.T) {
	needCrowd(t)
	d := launchLocked(t)
	guest := newGuest(t, d)
	guest.work(func() bool { return guest.turns.total+uint64(guest.failures) < firstComers })
	span := crowdSpan(8 * time.Second)
	c := &crowd{name: "hostile", address: d.address, ways: worst(), rest: restTime}
	c.beside(t, d, guest, span)
	if guest.failures > 0 || guest.turns.total == 0 {
		t.Errorf("%d turns of the well-behaved client failed, the last with: %v", guest.failures, guest.last)
	}
	for i := range c.ways {
		if c.visits[i].Load() == 0 {
			t.Errorf("no client sent %s", c.ways[i].name)
		}
	}
	if c.weight > hostileCeiling {
		t.Errorf("%d bytes per hostile connection, at most %d are allowed", c.weight, hostileCeiling)
	}
	c.leave(t, guest)

	// To compare: as many clients with nothing but valid commands, and as many bytes.
	pace := c.sent.Load() / int64(span/sampleInterval) / hostileClients
	valid := &crowd{name: "pinging", address: d.address, ways: []way{{"PING", pinger(int(pace))}}, rest: restTime}
	valid.beside(t, d, guest, span)
	if text := d.process.text(); strings.Contains(text, "panic") {
		t.Error("something panicked; the daemon's log is below")
	}
}

// needCrowd skips what is not asked for: it needs the machine to itself.
func needCrowd(t *testing.T) {
	t.Helper()
	if os.Getenv("BENCH_CROWD") == "" && os.Getenv("BENCH_LONG") == "" {
		t.Skip("needs the machine to itself: make crowd, BENCH_LONG=1 make crowd (a minute for each crowd)")
	}
}

// crowdSpan is how long a crowd is there.
func crowdSpan(short time.Duration) time.Duration {
	if os.Getenv("BENCH_LONG") == "1" {
		return time.Minute
	}
	return short
}

// launchLocked starts a daemon that requires a password. Its masters have a long timeout: they
// share this machine with the crowd, and an answer within 100 ms depends little on the daemon.
func launchLocked(t *testing.T, more ...string) *daemon {
	t.Helper()
	_, options := realMasters(t, 5)
	options = append(options, "--requirepass", password, "--master-timeout", "1s", "--max-clients", "20000", "--max-clients-per-address", "0")
	d, err := startDaemon(binary, t.TempDir()+"/redlockd", append(options, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.process.terminate()
		if t.Failed() {
			t.Logf("the daemon on %s printed:\n%s", d.address, d.process.text())
		}
	})
	return d
}

// guest is the only authenticated client. It acquires and releases a lock.
type guest struct {
	*respConn
	turns    histogram // of a DLOCK with its DUNLOCK
	failures int       // turns that ended in an error
	last     error     // of them
}

func newGuest(t *testing.T, d *daemon) *guest {
	t.Helper()
	conn, err := dialRESP(t.Context(), d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.close)
	if _, err := conn.do("AUTH", password); err != nil {
		t.Fatal(err)
	}
	g := &guest{respConn: conn}
	if err := d.process.waitFor("the first lock", func() bool { return g.turn() == nil }); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guest) turn() error {
	lock, err := g.do("DLOCK", "crowd:guest", "5000")
	if err != nil {
		return fmt.Errorf("DLOCK: %w", err)
	}
	if lock.Kind != '*' || len(lock.Items) != 3 {
		return fmt.Errorf("DLOCK of an uncontended lock: %c%s", lock.Kind, lock.Text)
	}
	gone, err := g.do("DUNLOCK", "crowd:guest", lock.Items[0].Text)
	if err == nil && gone.Int != 1 {
		err = errNotReleased
	}
	return err
}

// work takes turns while it should, and counts anew.
func (g *guest) work(goOn func() bool) {
	for g.turns, g.failures, g.last = (histogram{}), 0, nil; goOn(); {
		began := time.Now()
		if err := g.turn(); err != nil {
			g.failures, g.last = g.failures+1, err
			continue
		}
		g.turns.add(time.Since(began))
	}
}

// crowd is a set of clients that connect again soon after the daemon closes their
// connections.
type crowd struct {
	name    string
	address string
	ways    []way
	rest    time.Duration    // between two visits, on average
	alone   bool             // all come from one address, and are reset when they come too fast
	visits  [16]atomic.Int64 // by way; there are fewer
	sent    atomic.Int64     // bytes
	failed  atomic.Pointer[error]
	weight  int64 // bytes of the daemon for each, at the worst moment
}

// way is how one kind of client behaves from its first byte to its end.
type way struct {
	name string
	come func(ctx context.Context, v *visit) error
}

// beside has the guest work while the crowd is there, and weighs the daemon.
func (c *crowd) beside(t *testing.T, d *daemon, g *guest, span time.Duration) {
	t.Helper()
	before, worked := occupied(t, d), ticks(t, d)
	// Not a deadline: a dial would fail at it before the context has ended.
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(span, cancel).Stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range hostileClients {
		all.Go(func() { c.besiege(ctx, i) })
	}
	peak, next := before, time.Now()
	g.work(func() bool {
		if now := time.Now(); now.After(next) {
			peak, next = max(peak, occupied(t, d)), now.Add(sampleInterval)
		}
		return ctx.Err() == nil
	})
	c.weight = (peak - before) / hostileClients
	t.Logf("beside %d %s clients (%d visits, %d MB in %v): %d turns of DLOCK and DUNLOCK, %d failed, p50 %.2f ms, p99 %.2f ms; the daemon took %.2f of a core and at most %d bytes each",
		hostileClients, c.name, c.visited(), c.sent.Load()/1e6, span,
		g.turns.total, g.failures, g.turns.quantile(.5)/1e3, g.turns.quantile(.99)/1e3,
		float64(ticks(t, d)-worked)/ticksPerSecond/span.Seconds(), c.weight)
	if err := c.failed.Load(); err != nil {
		t.Error(*err)
	}
}

// besiege is one client of the crowd: it behaves in its way until the context ends.
func (c *crowd) besiege(ctx context.Context, i int) {
	// Many addresses, none of them the guest's: a limit that counts by address
	// shall not keep them away.
	from := byte(1 + i%250)
	if c.alone {
		from = 251
	}
	dialer := net.Dialer{Timeout: visitTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, from)}}
	one := i % len(c.ways)
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", c.address)
		if err == nil {
			c.visits[one].Add(1)
			err = c.visit(ctx, conn, c.ways[one])
		}
		if c.alone {
			err = nil // a reset may come before the connection is seen to be there
		}
		if err != nil && ctx.Err() == nil {
			c.failed.CompareAndSwap(nil, &err)
			return
		}
		_ = pause(ctx, c.rest/2+rand.N(c.rest)) // the loop looks at the context itself
	}
}

func (c *crowd) visit(ctx context.Context, conn net.Conn, w way) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(visitTimeout))
	if err := w.come(ctx, &visit{Conn: conn, sent: &c.sent}); err != nil {
		return fmt.Errorf("a client that sends %s: %w", w.name, err)
	}
	return nil
}

func (c *crowd) visited() (sum int64) {
	for i := range c.visits {
		sum += c.visits[i].Load()
	}
	return sum
}

// leave waits until the guest is alone again.
func (c *crowd) leave(t *testing.T, g *guest) {
	t.Helper()
	for end := time.Now().Add(visitTimeout); ; _ = pause(t.Context(), sampleInterval) {
		info, err := g.do("INFO", "clients")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Text, "connected_clients:1\r\n") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the crowd has gone, and INFO shows\n%s", info.Text)
		}
	}
}

// visit is one connection of the crowd. Its writes may fail: most are cut off
// in the middle of one.
type visit struct {
	net.Conn
	sent *atomic.Int64
}

func (v *visit) write(text string) error {
	n, err := io.WriteString(v.Conn, text)
	v.sent.Add(int64(n))
	return err
}

var (
	errLetIn   = errors.New("it was let in")
	errIgnored = errors.New("it was neither answered nor cut off in time")
)

// end reads until the daemon closes the connection, as it must, without a login.
func (v *visit) end() error {
	answers, err := io.ReadAll(v.Conn)
	if bytes.HasPrefix(answers, []byte("+")) || bytes.Contains(answers, []byte("\n+")) {
		return fmt.Errorf("%w: %q", errLetIn, answers)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w; it has read %q", errIgnored, answers)
	}
	return nil // a reset is as good an end
}

// drip sends one byte at a time until the daemon closes the connection.
func (v *visit) drip(ctx context.Context) error {
	for v.write("x") == nil {
		if err := pause(ctx, dripInterval); err != nil {
			return nil
		}
	}
	return v.end()
}

// worst returns the attacks of unauthenticated clients.
func worst() []way {
	const gets = 20_000
	headers := []string{"*2147483647\r\n", "*9223372036854775807\r\n", "*11\r\n", "*1025\r\n", "*-9223372036854775809\r\n",
		"*1\r\n$9223372036854775807\r\n", "*1\r\n$16385\r\n", "*1\r\n$536870913\r\n", "*1\r\n$-1\r\n", "*" + strings.Repeat("9", 70_000)}
	thousand := strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 1000)
	word := "$16384\r\n" + strings.Repeat("x", 16<<10) + "\r\n"
	once := func(texts ...string) func(context.Context, *visit) error {
		return func(_ context.Context, v *visit) error {
			_ = v.write(texts[rand.IntN(len(texts))])
			return v.end()
		}
	}
	return []way{
		{"half a command", func(ctx context.Context, v *visit) error {
			_ = v.write("*2\r\n$4\r\nECHO\r\n$16384\r\n")
			return v.drip(ctx)
		}},
		{"most of a long word", func(ctx context.Context, v *visit) error {
			_ = v.write("*2\r\n$4\r\nECHO\r\n" + word[:12_000])
			return v.drip(ctx)
		}},
		{"a line without an end", func(_ context.Context, v *visit) error {
			_ = v.write(strings.Repeat("x", lineLength))
			return v.end()
		}},
		{"GETs without reading", func(ctx context.Context, v *visit) error {
			for range gets / 1000 {
				if v.write(thousand) != nil {
					break
				}
			}
			return v.end()
		}},
		{"hello to TLS", once("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 500))},
		{"impossible headers", once(headers...)},
		{"wrong passwords", once(strings.Repeat("AUTH guess\r\n", 3), strings.Repeat("HELLO 3 AUTH default guess\r\n", 3))},
		{"nothing", func(_ context.Context, v *visit) error {
			return v.Conn.(*net.TCPConn).SetLinger(0) // and resets
		}},
	}
}

// pinger makes an authenticated client send about this number of bytes in each interval.
func pinger(bytes int) func(context.Context, *visit) error {
	const ping, pong = "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"
	n := max(1, bytes/len(ping))
	return func(ctx context.Context, v *visit) error {
		_ = v.write("AUTH \"" + password + "\"\r\n")
		answers := make([]byte, len("+OK\r\n"), max(n*len(pong), 8))
		for {
			if _, err := io.ReadFull(v.Conn, answers); err != nil {
				return err
			}
			if err := errors.Join(v.SetDeadline(time.Now().Add(visitTimeout)), v.write(strings.Repeat(ping, n)), pause(ctx, sampleInterval)); err != nil {
				return err
			}
			answers = answers[:n*len(pong)]
		}
	}
}
