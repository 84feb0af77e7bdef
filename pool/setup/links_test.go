package setup

// links_test.go: masters that keep a subcommand waiting.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

// patience bounds what must end by itself.
const patience = 2 * time.Minute

// ends fails if the call does not end.
func ends(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
	}
}

// hurried is the timeout of steps that are never answered.
const hurried = time.Second

// clientTLS trusts the authority.
func clientTLS(t *testing.T, a *faulty.Authority) *atomic.Pointer[tls.Config] {
	t.Helper()
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	secured := new(atomic.Pointer[tls.Config])
	secured.Store(&tls.Config{RootCAs: trusted})
	return secured
}

// Masters that accept connections and never answer, at every step of a connection.
func TestSubcommands_EndAlthoughAMasterNeverAnswers(t *testing.T) {
	t.Parallel()
	authority := faulty.NewAuthority(t)
	server := faulty.WithTLS(authority.Issue("127.0.0.1")).Start(t)
	silent := faulty.NewRelay(server.Addr())
	t.Cleanup(silent.Close)
	silent.HalfOpen()
	for name, c := range map[string]struct {
		timeout time.Duration
		change  func(*wire.Master)
		says    string
	}{
		"silent":                     {hurried, func(m *wire.Master) { m.Address = silent.Addr() }, "deadline exceeded"},
		"silent, with a password":    {hurried, func(m *wire.Master) { m.Address, m.Password = silent.Addr(), "secret" }, "deadline exceeded"},
		"silent, with TLS":           {hurried, func(m *wire.Master) { m.Address, m.TLS = silent.Addr(), clientTLS(t, authority) }, "does not answer a handshake: check rediss://"},
		"TLS to a port without it":   {hurried, func(m *wire.Master) { m.TLS = clientTLS(t, authority) }, "does not answer a handshake: check rediss://"},
		"no TLS to a port with it":   {unhurried, func(m *wire.Master) { m.Address = server.TLSAddr() }, "ends a connection without it: check redis://"},
		"a password that is not set": {unhurried, func(m *wire.Master) { m.Username, m.Password = "nobody", "wrong" }, "WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := optionsOf(server, server, server)
			o.Dialer = watched(wire.DialRueidis(c.timeout), slog.Default())
			for i := range o.Masters {
				c.change(&o.Masters[i])
			}
			ends(t, "check", func() {
				var text strings.Builder
				err := Check(t.Context(), o, false, &text)
				out := text.String()
				if !errors.Is(err, ErrUnfit) || strings.Count(out, "cannot be reached: ") != 3 || !strings.Contains(out, c.says) {
					t.Errorf("%v\n%s\nwant %q", err, out, c.says)
				}
			})
			ends(t, "bootstrap", func() {
				if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err == nil || strings.Count(err.Error(), "master ") < 3 || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
			})
		})
	}
}

// A subcommand ends with its context, also while it waits for an answer.
func TestSubcommands_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	o.MasterTimeout = patience
	relay := faulty.NewRelay(servers[1].Addr())
	t.Cleanup(relay.Close)
	o.Masters[1].Address = relay.Addr()
	log := new(faulty.Log)
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	relay.StallAfter(500, faulty.ToClient) // the login and a part of what follows
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() {
		appears(log, `msg="waiting for a master" master=b step="answer to `)
		cancel()
	})
	defer watch.Wait()
	ends(t, "check", func() {
		var out strings.Builder
		if err := Check(ctx, o, false, &out); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "it changes nothing") {
			t.Errorf("%v\n%s", err, &out)
		}
	})
}

// The log shows which master a subcommand waits for, and nothing where none keeps it waiting.
func TestSubcommands_ShowWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	relay := faulty.NewRelay(servers[1].Addr())
	t.Cleanup(relay.Close)
	o.Masters[1].Address = relay.Addr()
	log := new(faulty.Log)
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	relay.Pause(faulty.ToClient)
	var watch sync.WaitGroup
	watch.Go(func() {
		if !appears(log, `msg="waiting for a master" master=b step="connection and login" for=`) {
			t.Error("the log does not show the wait")
		}
		relay.Resume()
	})
	defer watch.Wait()
	ends(t, "bootstrap", func() {
		if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// A command that itself waits keeps its links: their steps are short all the same.
func TestProgress_ShowsHowLongAMasterKeepsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(faulty.Log)
		p := newProgress("b", slog.New(slog.NewTextHandler(log, nil)))
		time.Sleep(7*progressEvery - time.Millisecond)
		p.wait("answer to HGET")
		time.Sleep(2 * time.Millisecond)
		p.wait("")
		if text := log.String(); text != "" {
			t.Errorf("a short step is shown: %s", text)
		}
		for range 10 { // a slow master
			p.wait("answer to ZRANGE")
			time.Sleep(progressEvery / 10)
			p.wait("")
		}
		p.end()
		if text := log.String(); strings.Count(text, "waiting for a master") != 1 || !strings.Contains(text, `step="answer to ZRANGE" for=1s`) {
			t.Errorf("got %s", text)
		}
	})
}

// What a master did not answer is sent again, on another connection.
func TestBootstrap_SendsAgainWhatWasNotAnswered(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	relay := faulty.NewRelay(servers[1].Addr())
	t.Cleanup(relay.Close)
	o.Masters[1].Address = relay.Addr()
	for cut := 1; cut < 40; cut += 2 {
		for _, s := range servers {
			s.FlushAll()
		}
		left := cut
		o.Dialer = hooked(wire.DialRueidis(2*unhurried), func(master string, _ []wire.Command, exchange func() []wire.Reply) []wire.Reply {
			if master == "b" {
				if left--; left == 0 {
					relay.Cut()
				}
			}
			return exchange()
		})
		if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
			t.Errorf("cut before exchange %d: %v", cut, err)
		}
	}
}

// appears reports whether a text appears in a log.
func appears(log *faulty.Log, text string) bool {
	for end := time.Now().Add(patience / 2); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(log.String(), text) {
			return true
		}
	}
	return false
}
