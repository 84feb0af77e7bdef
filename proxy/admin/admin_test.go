package admin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock"
)

// TestMain leaves out what other packages start before any test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// fakes are a daemon with one master of three that does not vote, and its locks.
type fakes struct{ locks }

// locks are those that the page reads.
type locks interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	Waiting(db int, wanted func(redlock.Key) bool, limit int) (list []redlock.Waiting, all int)
	Listen(db int, onEvent func(redlock.Event)) (end func())
}

func snapshot() (s commands.Snapshot) {
	s.Locks.Acquired, s.Locks.SecondSeals, s.Locks.IDs, s.Locks.Undone, s.Locks.LateGrants = 5, 2, 9, 3, 4
	s.Locks.Held, s.Locks.HeldFor.Counts[1], s.Locks.HeldFor.Counts[14], s.Locks.HeldFor.Sum = 16, 3, 1, time.Minute
	s.Lanes.BreakerOpened, s.Lanes.Void[0] = 6, 8
	s.InFlight = 7
	s.Clients = commands.ClientCounts{Connected: 12, Slow: 13, Evicted: 14, Memory: 15}
	return s
}

func (fakes) Reports(int) []redlock.MasterReport {
	all := make([]redlock.MasterReport, 3)
	for i, name := range []string{"a", "b", "c"} {
		all[i].Name, all[i].State = name, "voting"
	}
	all[1].State, all[1].Queued = "down", 11
	all[0].Votes = pool.Votes{Yes: 1, No: 2, Uncounted: 3}
	all[0].RTT.Counts[5], all[0].RTT.Sum = 4, time.Second
	return all
}

type fakeLanes struct{ fakes }

func (fakeLanes) Databases() []int { return []int{0, 3} }
func (fakeLanes) Quorum() int      { return 2 }

func figures() Options {
	sources := Sources{
		Version: "0.1.0", Locks: fakes{lookingAt()}, Groups: []Group{{Masters: fakeLanes{}}}, Latencies: NewLatencies(), Snapshot: snapshot,
		Dropin: func() []dropin.Stat { return nil },
	}
	return Options{
		Listen: "127.0.0.1:0", Login: (*access.Users)(nil), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Sources: sources,
		Ready:   func(string) (int, string) { return http.StatusOK, "3 of 3" },
	}
}

// withUsers are an operator, a scraper and a worker.
func withUsers(t *testing.T, o Options) Options {
	t.Helper()
	users, err := access.NewUsers([]access.User{
		access.Everything("operator", "op"),
		{Name: "scraper", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("sc"))}, Commands: []string{"read"}},
		{Name: "worker", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("wo"))}, Commands: []string{"lock"}, Keys: []string{"*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Login = users
	return o
}

// ask sends a request without a socket, as if from an address.
func ask(t *testing.T, o Options, from, path, login string) *httptest.ResponseRecorder {
	t.Helper()
	return askServer(newServer(o), from, path, login)
}

func askServer(s *Server, from, path, login string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr, r.Host = from, "127.0.0.1:9379"
	if name, password, ok := strings.Cut(login, ":"); ok {
		r.SetBasicAuth(name, password)
	}
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	return w
}

func TestAdmin_ServesEachPathToAuthorizedUsers(t *testing.T) {
	open := figures()
	open.Pprof = true
	protected := open
	protected.LocalOnly = true
	users := withUsers(t, open)
	const here, there = "127.0.0.1:1", "10.0.0.1:1"
	for _, c := range []struct {
		o                 Options
		from, path, login string
		want              int
	}{
		{open, there, "/metrics", "", 200},
		{open, there, "/debug/pprof/cmdline", "", 200},
		{protected, here, "/metrics", "", 200},
		{protected, "[::1]:1", "/metrics", "", 200},
		{protected, "[::ffff:127.0.0.1]:1", "/metrics", "", 200},
		{protected, there, "/metrics", "", 403},
		{protected, there, "/debug/pprof/cmdline", "", 403},
		{protected, there, "/healthz", "", 200},
		{users, here, "/metrics", "", 401},
		{users, here, "/metrics", "scraper:wrong", 401},
		{users, here, "/metrics", "worker:wo", 403},
		{users, there, "/metrics", "scraper:sc", 200},
		{users, there, "/debug/pprof/cmdline", "scraper:sc", 403},
		{users, there, "/debug/pprof/cmdline", "operator:op", 200},
		{users, there, "/healthz", "", 200},
		{users, there, "/readyz", "", 200},
		{figures(), here, "/debug/pprof/cmdline", "", 404},
		{open, here, "/nothing", "", 404},
	} {
		w := ask(t, c.o, c.from, c.path, c.login)
		if w.Code != c.want {
			t.Errorf("%s from %s as %q: %d, want %d: %s", c.path, c.from, c.login, w.Code, c.want, w.Body)
		}
		if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: status %d and header %v", c.path, w.Code, w.Header())
		}
	}
}

func TestAdmin_StopsCheckingPasswordsOfAGuesser(t *testing.T) {
	s := newServer(withUsers(t, figures()))
	for range 1000 {
		if askServer(s, "10.0.0.1:1", "/metrics", "scraper:guess").Code == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("1000 guesses were looked at")
}

func TestReadyz_FailsWithoutAQuorumAndWhileDraining(t *testing.T) {
	o := figures()
	o.Ready = func(string) (int, string) {
		return http.StatusServiceUnavailable, "1 of 3 masters may vote, 2 needed"
	}
	s := newServer(o)
	if w := askServer(s, "10.0.0.1:1", "/readyz", ""); w.Code != 503 || w.Body.String() != "1 of 3 masters may vote, 2 needed\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := askServer(s, "10.0.0.1:1", "/healthz", ""); w.Code != 200 {
		t.Errorf("healthz is %d: a restart would not bring masters back", w.Code)
	}
	s = newServer(figures())
	s.Drain()
	if w := askServer(s, "10.0.0.1:1", "/readyz", ""); w.Code != 503 || w.Body.String() != "draining\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMetrics_ShowWhatThePackagesCount(t *testing.T) {
	text := ask(t, figures(), "127.0.0.1:1", "/metrics", "").Body.String()
	for _, line := range []string{
		"redlockd_locks_acquired_total 5", "redlockd_fence_second_seals_total 2", "redlockd_ids_total 9", "redlockd_copies_undone_total 3",
		"redlockd_copies_late_total 4", "redlockd_operations_in_flight 7", "redlockd_breaker_opened_total 6",
		`redlockd_seals_void_total{reason="forgot"} 8`, `redlockd_seals_void_total{reason="late"} 0`,
		`redlockd_master_state{database="0",master="b",state="down"} 1`, `redlockd_master_state{database="3",master="b",state="voting"} 0`,
		`redlockd_master_queued_operations{database="0",master="b"} 11`,
		`redlockd_master_votes_total{database="0",master="a",vote="uncounted"} 3`,
		`redlockd_master_round_trip_seconds_bucket{database="0",master="a",le="3.2e-05"} 0`,
		`redlockd_master_round_trip_seconds_bucket{database="0",master="a",le="6.4e-05"} 4`,
		`redlockd_master_round_trip_seconds_sum{database="0",master="a"} 1`,
		`redlockd_masters_voting{database="0"} 2`, `redlockd_masters_needed{database="0"} 2`, `redlockd_masters{database="3"} 3`,
		`redlockd_masters_voting_work{database="0"} 2`, `redlockd_counters_forgotten{database="0"} 0`,
		"redlockd_clients_connected 12", "redlockd_clients_output_limit_total 13", "redlockd_clients_evicted_total 14", "redlockd_clients_memory_bytes 15", `redlockd_lock_seconds_count{outcome="granted"} 0`,
		"redlockd_locks_held 16", `redlockd_lock_held_seconds_bucket{le="0.001"} 0`, `redlockd_lock_held_seconds_bucket{le="0.004"} 3`,
		`redlockd_lock_held_seconds_bucket{le="67108.864"} 3`, `redlockd_lock_held_seconds_bucket{le="+Inf"} 4`, "redlockd_lock_held_seconds_sum 60",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestMetrics_ShowSpansWithACollector(t *testing.T) {
	o := figures()
	if text := ask(t, o, "127.0.0.1:1", "/metrics", "").Body.String(); strings.Contains(text, "redlockd_traces") {
		t.Error("figures of traces although there are none")
	}
	o.Sources.Snapshot = func() commands.Snapshot {
		return commands.Snapshot{Traces: &commands.TraceCounts{Sent: 13, Dropped: 14}}
	}
	text := ask(t, o, "127.0.0.1:1", "/metrics", "").Body.String()
	for _, line := range []string{"redlockd_traces_sent_total 13", "redlockd_traces_dropped_total 14"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

func TestMetrics_KeepPrometheusNamingConventions(t *testing.T) {
	families, err := newFigures(figures().Sources).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "redlockd_") {
			continue // of the Go runtime and the process
		}
		counter := f.GetType().String() == "COUNTER"
		switch {
		case counter != strings.HasSuffix(name, "_total"):
			t.Errorf("%s is a %s: counters, and they alone, end with _total", name, f.GetType())
		case f.GetType().String() == "HISTOGRAM" && !strings.HasSuffix(name, "_seconds"):
			t.Errorf("%s: histograms end with their unit", name)
		case !strings.HasSuffix(f.GetHelp(), "."):
			t.Errorf("%s: help %q is no sentence", name, f.GetHelp())
		}
	}
}

func certificate(t *testing.T, serial int64) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// fetch requests over a socket and returns the status and the certificate's number.
func fetch(t *testing.T, url string) (status int, serial int64) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.TLS != nil {
		serial = response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	return response.StatusCode, serial
}

func TestServer_ServesUntilItsShutdown(t *testing.T) {
	s, err := New(figures())
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	if status, _ := fetch(t, s.URL()+"/metrics"); status != 200 {
		t.Errorf("status %d", status)
	}
	taken := figures()
	taken.Listen = s.listener.Addr().String()
	if _, err := New(taken); err == nil || !strings.Contains(err.Error(), taken.Listen) {
		t.Errorf("an address in use: %v", err)
	}
	s.Shutdown(t.Context())
	if _, err := http.Get(s.URL() + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

// A client that never ends its request is cut off with the context.
func TestServer_ShutsDownAlthoughARequestIsUnderWay(t *testing.T) {
	o, inside, leave := figures(), make(chan struct{}), make(chan struct{})
	o.Ready = func(string) (int, string) { close(inside); <-leave; return http.StatusOK, "" }
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if response, err := http.Get(s.URL() + "/readyz"); err == nil {
			response.Body.Close()
		}
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Shutdown(ctx)
	<-answered // its connection was cut, although its handler has not ended
	close(leave)
	http.DefaultClient.CloseIdleConnections()
}

func TestServer_NeverServedGivesItsAddressBack(t *testing.T) {
	o := figures()
	o.Listen = faulty.FreeAddr(t)
	for range 2 {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Shutdown(t.Context())
	}
}

func TestServer_ShowsTheCertificatesThatWereReadLast(t *testing.T) {
	o := figures()
	o.Listen = "tls:127.0.0.1:0"
	next, failure := certificate(t, 1), error(nil)
	o.TLS = func() (*tls.Config, error) { return next, failure }
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(t.Context())
	for _, step := range []struct {
		serial int64
		err    error
		want   int64
	}{{2, nil, 2}, {3, errors.New("cannot be read"), 2}} {
		next, failure = certificate(t, step.serial), step.err
		if err := s.ReloadTLS(); !errors.Is(err, step.err) {
			t.Errorf("%v, want %v", err, step.err)
		}
		if status, serial := fetch(t, s.URL()+"/healthz"); status != 200 || serial != step.want {
			t.Errorf("status %d with certificate %d, want %d", status, serial, step.want)
		}
	}
	o.TLS = func() (*tls.Config, error) { return nil, errors.New("no files") }
	if _, err := New(o); err == nil {
		t.Error("it listens without certificates")
	}
}
