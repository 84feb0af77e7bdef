package daemon

// Tests of the admin endpoint and of DMASTERS, on the process that an operator
// would run.

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// spoken collects what a process prints and lets a test wait for a line of it.
type spoken struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // 1: a hint that there may be more
	ended chan struct{}
}

func listenTo(out io.Reader) *spoken {
	s := &spoken{more: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.read(out)
	return s
}

func (s *spoken) read(out io.Reader) {
	defer close(s.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.mu.Lock()
		s.lines = append(s.lines, lines.Text())
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}

// wait returns what follows a prefix.
func (s *spoken) wait(t *testing.T, prefix string) string {
	t.Helper()
	limit := time.After(testTimeout)
	for ended := false; ; {
		s.mu.Lock()
		for _, line := range s.lines {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				s.mu.Unlock()
				return rest
			}
		}
		all := strings.Join(s.lines, "\n")
		s.mu.Unlock()
		if ended {
			t.Fatalf("no line begins with %q in\n%s", prefix, all)
		}
		select {
		case <-s.more:
		case <-s.ended:
			ended = true
		case <-limit:
			ended = true
		}
	}
}

// operated is a daemon process with a port and an admin endpoint.
type operated struct {
	process   *exec.Cmd
	port, url string
}

func operate(t *testing.T, args ...string) *operated {
	t.Helper()
	return operateAs(t, append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...))
}

// operateAs is operate with nothing but these arguments.
func operateAs(t *testing.T, args []string) *operated {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), 3*testTimeout) // one that does not end is killed
	t.Cleanup(cancel)
	process := exec.CommandContext(limit, os.Args[0], args...)
	process.Env = asDaemon()
	process.Stderr = t.Output()
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	said := listenTo(out)
	t.Cleanup(func() {
		_ = process.Process.Kill() // of a process that has ended: an error, rightly ignored
		<-said.ended
		_ = process.Wait()
	})
	o := &operated{process: process}
	o.port = said.wait(t, "redlockd listens on ")
	o.url = said.wait(t, "metrics and health on ")
	return o
}

// get sends a request to the admin endpoint; login is "user:password" or "".
func (o *operated) get(t *testing.T, path, login string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", o.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if name, password, ok := strings.Cut(login, ":"); ok {
		request.SetBasicAuth(name, password)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// await sends requests until the admin endpoint answers with the status and these words.
func (o *operated) await(t *testing.T, path string, want int, words ...string) (body string) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		status, body := o.get(t, path, "")
		if status == want && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(body, word) }) {
			return body
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %d, want %d and %q: %s", path, status, want, words, body)
		}
	}
}

func (o *operated) stop(t *testing.T) {
	t.Helper()
	if err := o.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := o.process.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

func TestAdmin_ShowsWhatTheDaemonDoes(t *testing.T) {
	o := operate(t, "--embedded", "3", "--pprof", "--metrics-prefixes", "orders:,inv")
	o.await(t, "/readyz", http.StatusOK, "3 of 3")
	c := dial(t, o.port)
	c.lock(t, "invoices")
	if got := c.ask(t, "DLOCK invoices 30000"); got != "$-1" {
		t.Errorf("a second DLOCK: %s", got)
	}
	status, text := o.get(t, "/metrics", "")
	for _, line := range []string{
		"redlockd_locks_acquired_total 1", "redlockd_locks_refused_total 1", `redlockd_lock_seconds_count{outcome="granted"} 1`,
		`redlockd_lock_seconds_count{outcome="refused"} 1`, `redlockd_masters_voting{database="0"} 3`, "redlockd_clients_connected 1",
		`redlockd_dlock_results_total{outcome="granted",prefix="inv"} 1`, `redlockd_dlock_results_total{outcome="refused",prefix="inv"} 1`,
		`redlockd_dlock_results_total{outcome="granted",prefix="other"} 0`, "redlockd_locks_held 1", "redlockd_lock_held_seconds_count 0",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("status %d, no line %s in\n%s", status, line, text)
		}
	}
	if status, _ := o.get(t, "/debug/pprof/goroutine?debug=1", ""); status != http.StatusOK {
		t.Errorf("a profile: %d", status)
	}
	o.stop(t)
}

func TestAdmin_RequiresTheUsersOfThePort(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, users, "anna")
	o := operate(t, "--embedded", "3", "--users", users, "--pprof")
	if status, _ := o.get(t, "/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("metrics without a login: %d", status)
	}
	if status, _ := o.get(t, "/healthz", ""); status != http.StatusOK {
		t.Errorf("health without a login: %d", status)
	}
	o.stop(t)
}

// pageShows polls what the page polls until a response has the text.
func (o *operated) pageShows(t *testing.T, path, login, text string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, last = o.get(t, path, login); strings.Contains(last, text) {
			return
		}
	}
	t.Fatalf("%s never showed %q, last: %s", path, text, last)
}

func TestAdmin_ServesAPageThatShowsLocksAndTakesThemAway(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.toml")
	text := fmt.Sprintf("[user.ops]\npassword-sha256 = \"%x\"\nkeys = [\"inv*\"]\ncommands = [\"lock\", \"read\", \"force\"]\n", sha256.Sum256([]byte("open")))
	if err := os.WriteFile(users, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := operate(t, "--embedded", "3", "--users", users)
	o.await(t, "/readyz", http.StatusOK)
	c := dial(t, o.port)
	if got := c.ask(t, "AUTH ops open"); got != "+OK" {
		t.Fatal(got)
	}
	c.lock(t, "invoices")
	if status, body := o.get(t, "/", "ops:open"); status != http.StatusOK || !strings.Contains(body, "<title>redlockd</title>") {
		t.Errorf("the page: %d %.80s", status, body)
	}
	if status, _ := o.get(t, "/", ""); status != http.StatusUnauthorized {
		t.Errorf("the page without a login: %d", status)
	}
	o.pageShows(t, "/state", "ops:open", "All 3 masters vote.")
	o.pageShows(t, "/locks", "ops:open", `"key":"invoices"`)
	request, err := http.NewRequestWithContext(t.Context(), "POST", o.url+"/force?db=0&id=aW52b2ljZXM", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("ops", "open")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if said, _ := io.ReadAll(response.Body); strings.TrimSpace(string(said)) != `"1"` {
		t.Errorf("force: %s: %s", response.Status, said)
	}
	if got := c.ask(t, "DLOCK invoices 30000"); got != "*3" {
		t.Errorf("after the force the next one is told %s", got)
	}
	o.stop(t) // an open page does not delay the stop
}

func TestAdmin_IsNotReadyWhileNoQuorumVotes(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Addr()
	}
	list := strings.Join(names, ",")
	if err := run(t.Context(), []string{"bootstrap", "--masters", list, "--databases", "1"}, []string{unhurried}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	o := operate(t, "--masters", list, "--databases", "1")
	o.await(t, "/readyz", http.StatusOK)
	servers[0].Kill()
	servers[1].Kill()
	if body := o.await(t, "/readyz", http.StatusServiceUnavailable, "1 of 3"); body != "1 of 3 masters may vote, 2 needed\n" {
		t.Errorf("it says %q", body)
	}
	c := dial(t, o.port)
	if got := c.ask(t, "DMASTERS"); got != "*3" {
		t.Errorf("DMASTERS: %s", got)
	}
	o.stop(t)
}

// Masters that have not answered yet may not vote: the first answer is right already.
func TestAdmin_IsNotReadyWhileMastersHaveNotAnswered(t *testing.T) {
	silent := strings.Join([]string{listenHere(t), listenHere(t), listenHere(t)}, ",")
	o := operate(t, "--masters", silent)
	if status, body := o.get(t, "/readyz", ""); status != http.StatusServiceUnavailable || body != "0 of 3 masters may vote, 2 needed\n" {
		t.Errorf("%d: %q", status, body)
	}
	o.stop(t)
}

// A balancer must not send clients here that would all receive NOQUORUM.
func TestAdmin_IsNotReadyWhileMastersThatAnswerRefuseWrites(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	var masters []string
	for i, s := range servers {
		masters = append(masters, masterName(i)+"="+s.Addr())
	}
	o := operate(t, "--masters", strings.Join(masters, ","))
	o.await(t, "/readyz", http.StatusOK)
	c := dial(t, o.port)
	for _, s := range servers[:2] {
		tell(t, s, "CONFIG", "SET", "maxmemory", 1)
	}
	if got := c.ask(t, "DLOCK invoices 30000"); !strings.HasPrefix(got, "-NOQUORUM ") {
		t.Fatalf("DLOCK on masters that are full: %s", got)
	}
	if body := o.await(t, "/readyz", http.StatusServiceUnavailable, "1 of 3"); body != "1 of 3 masters may vote, 2 needed\n" {
		t.Errorf("it says %q", body)
	}
	tell(t, servers[0], "CONFIG", "SET", "maxmemory", 0)
	if body := o.await(t, "/readyz", http.StatusOK, "2 of 3"); body != "2 of 3 masters may vote, 2 needed\n" {
		t.Errorf("it says %q once a quorum can be written to", body)
	}
	c.lock(t, "orders")
	o.stop(t)
}

func TestRun_ReportsAnAdminAddressInUse(t *testing.T) {
	o := operate(t, "--embedded", "3")
	address := strings.TrimPrefix(o.url, "http://")
	err := run(t.Context(), []string{"--listen", "127.0.0.1:0", "--admin-listen", address, "--log-level=error"}, nil, nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}
