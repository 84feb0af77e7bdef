// Server is a real redis-server process, alone in a directory of its own; every fault of it
// is a method.

package faulty

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxStartTries bounds how often a new server tries a port that another process does not take.
const maxStartTries = 5

// Options are the options of servers to start. The zero value is what Start uses.
type Options struct {
	// Clock lets Step change the server's wall clock. It costs a system call for each
	// reading of the clock, so it is off unless a test steps.
	Clock bool
	// Certificate has the server also serve TLS, on a port of its own, and present
	// this. Clients need none unless the arguments require theirs.
	Certificate Certificate
	// File is a configuration file for the server. It replaces the defaults, except
	// for the address and the directory.
	File string
	// Username and Password are what Do sends with AUTH, where the arguments switch the
	// default user off.
	Username, Password string
}

// WithClock is the option for servers whose clocks a test steps; the test is
// skipped where there is no C compiler. Use: faulty.WithClock().Start(t).
func WithClock() Options { return Options{Clock: true} }

// WithTLS is the option for servers that also serve TLS. Use:
// faulty.WithTLS(authority.Issue("127.0.0.1")).Start(t).
func WithTLS(c Certificate) Options { return Options{Certificate: c} }

// Server is one redis-server on a loopback port, without persistence unless its
// arguments set it. It ends with the test, and its output is logged if
// the test failed. The methods may be called from any goroutine; what fails in
// them fails the test.
type Server struct {
	t            testing.TB
	port         int
	args         []string
	login        []any  // AUTH and its words, given with --requirepass or Options; nil without
	dir          string // where it keeps its data
	output       string // file
	conf         string // Options.File
	reservations []*reservation
	clock        *steppedClock // nil without Options.Clock
	tls          Certificate
	tlsPort      int // 0 without Options.Certificate

	mu      sync.Mutex
	process *process
}

// Start runs a redis-server and returns when it answers. args follow the
// defaults (--save "" --appendonly no) and override them.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return Options{}.Start(t, args...)
}

// StartGroup starts n servers with the same arguments.
func StartGroup(t testing.TB, n int, args ...string) []*Server {
	t.Helper()
	return Options{}.StartGroup(t, n, args...)
}

// StartGroup is as the function, with options.
func (o Options) StartGroup(t testing.TB, n int, args ...string) []*Server {
	t.Helper()
	group := make([]*Server, n)
	for i := range group {
		group[i] = o.Start(t, args...)
	}
	return group
}

// Start is as the function, with options.
func (o Options) Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if os.Getenv("REDLOCKD_UNIT") != "" {
		t.Skip("REDLOCKD_UNIT is set: make test-unit starts no process")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("this test runs real masters and needs redis-server: %v\n"+
			"install it (apt-get install redis-server, dnf install redis, brew install redis) or run a package whose tests need none", err)
	}
	home := t.TempDir()
	s := &Server{t: t, args: args, conf: o.File, tls: o.Certificate, dir: filepath.Join(home, "data"), output: filepath.Join(home, "output")}
	if i := slices.Index(args, "--requirepass"); i >= 0 && i+1 < len(args) {
		s.login = []any{"AUTH", args[i+1]}
	}
	if o.Username != "" {
		s.login = []any{"AUTH", o.Username, o.Password}
	}
	if o.Clock {
		s.clock = newClock(t)
	}
	t.Cleanup(s.end)
	if err := s.startOnFreePort(); err != nil {
		t.Fatalf("redis-server %q: %v\n%s", args, err, s.Output())
	}
	return s
}

// startOnFreePort starts the server on a free port.
func (s *Server) startOnFreePort() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxStartTries {
		if err = s.choosePorts(); err != nil {
			return err
		}
		if err = s.startLocked(); err == nil || !s.portTaken() {
			return err
		}
		os.Remove(s.output) // or the next try would be blamed for it
	}
	return err
}

// choosePorts reserves the ports until the server has ended for good.
func (s *Server) choosePorts() (err error) {
	s.releasePorts()
	if s.port, err = s.reserve(); err != nil || s.tls == (Certificate{}) {
		return err
	}
	s.tlsPort, err = s.reserve()
	return err
}

func (s *Server) reserve() (port int, err error) {
	r, err := reservePort()
	if err != nil {
		return 0, err
	}
	s.reservations = append(s.reservations, r)
	return r.port, nil
}

func (s *Server) releasePorts() {
	for _, r := range s.reservations {
		r.release()
	}
	s.reservations = nil
}

// tlsArgs are the arguments for TLS.
func (s *Server) tlsArgs() []string {
	if s.tlsPort == 0 {
		return nil
	}
	return []string{"--tls-port", strconv.Itoa(s.tlsPort), "--tls-cert-file", s.tls.CertFile,
		"--tls-key-file", s.tls.KeyFile, "--tls-auth-clients", "no"}
}

func (s *Server) portTaken() bool { return strings.Contains(s.Output(), "Address already in use") }

// startLocked starts the server on its port and waits until it answers, and not another
// server that was quicker to take the port.
func (s *Server) startLocked() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	cmd := exec.Command("redis-server", slices.Concat(s.defaults(), s.tlsArgs(), s.args)...)
	if s.clock != nil {
		s.clock.install(cmd)
	}
	p, err := startProcess(cmd, s.output)
	if err != nil {
		return err
	}
	if err := until(p.exited, func() bool { return s.answersWithPID(p.pid()) }); err != nil {
		p.kill()
		return fmt.Errorf("answering on %s: %w", s.Addr(), err)
	}
	s.process = p
	return nil
}

// defaults are the arguments in front of the test's own.
func (s *Server) defaults() []string {
	place := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--daemonize", "no"}
	if s.conf != "" {
		return slices.Concat([]string{s.conf}, place)
	}
	return slices.Concat(place, []string{"--save", "", "--appendonly", "no"})
}

// answersWithPID is also false while the server loads its data.
func (s *Server) answersWithPID(pid int) bool {
	info, err := s.Do("INFO", "server")
	if text, ok := info.(string); err != nil || !ok || !strings.Contains(text, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return false
	}
	_, err = s.Do("PING")
	return err == nil
}

// end is the cleanup.
func (s *Server) end() {
	s.Kill()
	s.releasePorts()
	if s.t.Failed() {
		s.t.Logf("output of redis-server on %s:\n%s", s.Addr(), s.Output())
	}
}

// Addr is host:port; it stays the same through restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// TLSAddr is host:port of the port that serves TLS; it stays the same, too.
func (s *Server) TLSAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.tlsPort)) }

// Output is the end of what the server has printed.
func (s *Server) Output() string {
	const tail = 16 << 10
	text, err := os.ReadFile(s.output)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-tail):])
}

// Kill ends the server with SIGKILL, also a stopped one, and returns when it has
// ended. Killing a dead server does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killLocked()
}

func (s *Server) killLocked() {
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
}

// Restart kills the server, if it still runs, and starts it on the same port in
// the same directory: it remembers what its persistence kept.
func (s *Server) Restart() {
	s.t.Helper()
	s.restart(false)
}

// RestartEmpty is Restart with an empty directory: it remembers nothing.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.restart(true)
}

func (s *Server) restart(empty bool) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killLocked()
	if empty {
		if err := removeAll(s.dir); err != nil {
			s.t.Errorf("restarting redis-server with an empty directory: %v", err)
		}
	}
	if err := s.startLocked(); err != nil {
		s.t.Errorf("restarting redis-server: %v", err)
	}
}

// removeAll tries again for a while: a child of the killed server that rewrites a
// file may still be putting it there.
func removeAll(dir string) (err error) {
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// Stop freezes the server with SIGSTOP and returns when it is frozen: its
// connections stay, and are answered after Cont.
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.t.Errorf("Stop: redis-server on %s is not running", s.Addr())
	} else if err := s.process.stop(); err != nil {
		s.t.Errorf("stopping redis-server on %s: %v", s.Addr(), err)
	}
}

// Cont lets a stopped server run again.
func (s *Server) Cont() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.t.Errorf("Cont: redis-server on %s is not running", s.Addr())
	} else if err := s.process.cont(); err != nil {
		s.t.Errorf("continuing redis-server on %s: %v", s.Addr(), err)
	}
}

// Pid is the number of the process, 0 while there is none.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.pid()
}

// Step moves the server's wall clock by d, forward or back, on top of earlier
// steps. The server's next reading of its clock shows it; the offset survives a
// restart. It needs WithClock.
func (s *Server) Step(d time.Duration) {
	s.t.Helper()
	if s.clock == nil {
		s.t.Errorf("Step(%v): redis-server on %s keeps the true time; start it with faulty.WithClock().Start", d, s.Addr())
	} else if err := s.clock.step(d); err != nil {
		s.t.Errorf("redis-server on %s: %v", s.Addr(), err)
	}
}

// Do sends a command on a connection of its own. The reply is a string, an
// int64, nil or a []any of these; an error reply is a ReplyError.
func (s *Server) Do(args ...any) (any, error) {
	if s.login != nil {
		return roundTrip(s.Addr(), s.login, args)
	}
	return roundTrip(s.Addr(), args)
}

// FlushAll empties the server.
func (s *Server) FlushAll() {
	s.t.Helper()
	if _, err := s.Do("FLUSHALL"); err != nil {
		s.t.Errorf("FLUSHALL on %s: %v", s.Addr(), err)
	}
}

// DBSize is the number of keys in database 0, or -1 if the server does not answer.
func (s *Server) DBSize() int64 {
	s.t.Helper()
	reply, err := s.Do("DBSIZE")
	if err != nil {
		s.t.Errorf("DBSIZE on %s: %v", s.Addr(), err)
		return -1
	}
	return reply.(int64)
}

// Keys are the keys of database 0 in order, nil if the server does not answer.
func (s *Server) Keys() []string {
	s.t.Helper()
	reply, err := s.Do("KEYS", "*")
	if err != nil {
		s.t.Errorf("KEYS on %s: %v", s.Addr(), err)
		return nil
	}
	keys := make([]string, 0, len(reply.([]any)))
	for _, key := range reply.([]any) {
		keys = append(keys, key.(string))
	}
	slices.Sort(keys)
	return keys
}
