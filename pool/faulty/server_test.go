package faulty

import (
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// do is Do for commands that must succeed.
func do(t *testing.T, s *Server, args ...any) any {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

func TestServer_AnswersWithoutPersistence(t *testing.T) {
	s := Start(t)
	for _, want := range []struct{ option, value string }{{"save", ""}, {"appendonly", "no"}, {"bind", "127.0.0.1"}} {
		if got := do(t, s, "CONFIG", "GET", want.option).([]any); got[1] != want.value {
			t.Errorf("%s is %q, want %q", want.option, got[1], want.value)
		}
	}
}

func TestServer_ArgumentsWinOverTheDefaults(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--requirepass", "secret word")
	if got := do(t, s, "CONFIG", "GET", "appendonly").([]any); got[1] != "yes" {
		t.Errorf("appendonly is %q, want yes", got[1])
	}
	if _, err := roundTrip(s.Addr(), []any{"PING"}); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("PING without the password: %v, want NOAUTH", err)
	}
}

func TestServer_DoReturnsEveryKindOfReply(t *testing.T) {
	s := Start(t)
	if got := do(t, s, "SET", "b", 17); got != "OK" {
		t.Errorf("SET = %#v, want OK", got)
	}
	if got := do(t, s, "INCR", []byte("b")); got != int64(18) {
		t.Errorf("INCR = %#v, want 18", got)
	}
	if got := do(t, s, "GET", "b"); got != "18" {
		t.Errorf("GET = %#v, want 18", got)
	}
	if got := do(t, s, "GET", "c"); got != nil {
		t.Errorf("GET of no key = %#v, want nil", got)
	}
	do(t, s, "SET", "a\r\n", "x")
	if got := s.Keys(); !slices.Equal(got, []string{"a\r\n", "b"}) || s.DBSize() != 2 {
		t.Errorf("%d keys %q, want 2", s.DBSize(), got)
	}
	_, err := s.Do("LPUSH", "b", "x")
	if refused := ReplyError(""); !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "WRONGTYPE") {
		t.Errorf("LPUSH on a string: %v, want WRONGTYPE", err)
	}
	s.FlushAll()
	if s.DBSize() != 0 {
		t.Errorf("%d keys after FLUSHALL", s.DBSize())
	}
}

func TestServer_IsGoneOnceKilled(t *testing.T) {
	s := Start(t)
	pid := s.process.pid()
	s.Kill()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after Kill: %v, want %v", pid, err, syscall.ESRCH)
	}
	if _, err := net.Dial("tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial: %v, want %v", err, syscall.ECONNREFUSED)
	}
	s.Kill() // does nothing
}

func TestServer_RestartsOnTheSamePortAndRemembersWhatItPersisted(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	addr, first := s.Addr(), runID(t, s)
	do(t, s, "SET", "k", "v")
	s.Restart()
	if s.Addr() != addr || runID(t, s) == first {
		t.Errorf("restarted on %s with run_id %s, was %s and %s", s.Addr(), runID(t, s), addr, first)
	}
	if got := do(t, s, "GET", "k"); got != "v" {
		t.Errorf("after Restart k is %v, want v", got)
	}
	s.Kill()
	s.RestartEmpty()
	if got := do(t, s, "GET", "k"); got != nil {
		t.Errorf("after RestartEmpty k is %v, want nothing", got)
	}
}

func runID(t *testing.T, s *Server) string {
	t.Helper()
	_, id, _ := strings.Cut(do(t, s, "INFO", "server").(string), "run_id:")
	return id[:40]
}

func TestServer_KeepsConnectionsButDoesNotAnswerWhileStopped(t *testing.T) {
	s := Start(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send(t, conn, "PING\r\n")
	expect(t, conn, "+PONG\r\n")
	s.Stop()
	send(t, conn, "PING\r\n")
	expectSilence(t, conn)
	s.Cont()
	expect(t, conn, "+PONG\r\n")
}

func TestServer_AStoppedOneCanBeKilledAndRestarted(t *testing.T) {
	s := Start(t)
	s.Stop()
	s.Restart()
	do(t, s, "PING")
}

func TestServer_EndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("test", func(t *testing.T) {
		s := Start(t)
		pid = s.process.pid()
		s.Stop()
	})
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after its test: %v, want %v", pid, err, syscall.ESRCH)
	}
}

func TestServer_AGroupIsOfDistinctServers(t *testing.T) {
	ids := make(map[string]bool)
	for _, s := range StartGroup(t, 3) {
		ids[runID(t, s)] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d servers, want 3", len(ids))
	}
}

// verdict is a test that may fail or be skipped without the test around it.
type verdict struct {
	testing.TB
	failed, skipped string
}

func (v *verdict) Fatalf(format string, args ...any) { v.failed = format; panic(v) }
func (v *verdict) Skipf(format string, args ...any)  { v.skipped = format; panic(v) }

func judge(t *testing.T, f func(testing.TB)) (v *verdict) {
	v = &verdict{TB: t}
	defer func() {
		if caught := recover(); caught != any(v) {
			t.Errorf("ended with %v, want a verdict", caught)
		}
	}()
	f(v)
	return v
}

func TestServer_SaysHowToInstallWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	v := judge(t, func(t testing.TB) { Start(t) })
	if !strings.Contains(v.failed, "apt-get install redis-server") {
		t.Errorf("failed with %q, want how to install redis-server", v.failed)
	}
	if err := os.Symlink("/bin/true", os.Getenv("PATH")+"/redis-server"); err != nil {
		t.Fatal(err)
	}
	v = judge(t, func(t testing.TB) { WithClock().Start(t) })
	if v.failed != "" || !strings.Contains(v.skipped, "C compiler") {
		t.Errorf("without a compiler: failed with %q, skipped with %q; want a skip that names it", v.failed, v.skipped)
	}
}

func TestServer_SaysWhatAServerThatDoesNotStartPrinted(t *testing.T) {
	s := &Server{t: t, args: []string{"--no-such-option", "1"}, dir: t.TempDir(), output: t.TempDir() + "/output"}
	defer s.releasePorts()
	if err := s.startOnFreePort(); err == nil || !strings.Contains(s.Output(), "no-such-option") {
		t.Errorf("started with %v, output %q; want an error and the option in the output", err, s.Output())
	}
}

func TestServer_KeepsItsPortWhileItIsDown(t *testing.T) {
	s := Start(t)
	s.Kill()
	r := &reservation{port: s.port}
	if err := r.try(); err == nil && runtime.GOOS == "linux" {
		r.release()
		t.Error("another one may have the port of a server that comes back")
	}
	s.Restart()
	s.end()
	if err := r.try(); err != nil {
		t.Errorf("its port is kept beyond its end: %v", err)
	}
	r.release()
}

func TestServer_NoticesThatItsPortWasTaken(t *testing.T) {
	taken := relayTo(t, "")
	taken.HangUp()
	_, port, err := net.SplitHostPort(taken.Addr())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, port: number, dir: t.TempDir(), output: t.TempDir() + "/output"}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.startLocked(); err == nil || !s.portTaken() {
		t.Errorf("started with %v, output %q; want an error and the reason", err, s.Output())
	}
}

func TestClock_AStepIsSeenAtOnceAndStaysThroughARestart(t *testing.T) {
	s := WithClock().Start(t)
	near := func(want time.Duration) {
		t.Helper()
		seconds := do(t, s, "TIME").([]any)[0].(string)
		at, err := time.ParseDuration(seconds + "s")
		if err != nil {
			t.Fatal(err)
		}
		// A minute is beyond any slowness of the machine, and the steps are
		// hours.
		if off := at - time.Duration(time.Now().UnixNano()) - want; off.Abs() > time.Minute {
			t.Errorf("the server's clock is %v off, want %v", off+want, want)
		}
	}
	near(0)
	do(t, s, "SET", "k", "v", "PX", 30_000)
	s.Step(2 * time.Hour)
	near(2 * time.Hour)
	if got := do(t, s, "GET", "k"); got != nil {
		t.Errorf("a key of 30 s is %v after a step of two hours, want expired", got)
	}
	s.Step(-5 * time.Hour)
	near(-3 * time.Hour)
	s.Restart()
	near(-3 * time.Hour)
}

func TestClock_AnotherServerKeepsTheTrueTime(t *testing.T) {
	group := WithClock().StartGroup(t, 2)
	group[0].Step(24 * time.Hour)
	a, b := do(t, group[0], "TIME").([]any)[0].(string), do(t, group[1], "TIME").([]any)[0].(string)
	da, _ := time.ParseDuration(a + "s")
	db, _ := time.ParseDuration(b + "s")
	if apart := da - db; apart < 23*time.Hour || apart > 25*time.Hour {
		t.Errorf("the clocks are %v apart, want a day", apart)
	}
}
