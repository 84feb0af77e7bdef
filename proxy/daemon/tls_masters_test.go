package daemon

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"redlockd/commands/cli"
	"redlockd/pool/faulty"
)

// secured is a rediss:// place of a server, with a query.
func secured(s *faulty.Server, login string, query url.Values) string {
	return "rediss://" + login + s.TLSAddr() + "?" + query.Encode()
}

// The masters require a certificate and a password, and are addressed by name.
func TestTLSMasters_ServeLocksToAnAuthenticatedDaemon(t *testing.T) {
	authority := faulty.NewAuthority(t)
	servers := faulty.WithTLS(authority.Issue("master.test")).StartGroup(t, 3,
		"--tls-auth-clients", "yes", "--tls-ca-cert-file", authority.CAFile)
	bootstrapGroup(t, servers)
	mine := authority.Issue("daemon.test")
	query := url.Values{"ca": {authority.CAFile}, "cert": {mine.CertFile}, "key": {mine.KeyFile}, "server-name": {"master.test"}}
	var places []string
	for _, s := range servers {
		if _, err := s.Do("ACL", "SETUSER", "redlockd", "on", ">secret", "~*", "+@all"); err != nil {
			t.Fatal(err)
		}
		places = append(places, secured(s, "redlockd:secret@", query))
	}
	c := dial(t, serveHere(t, places))
	token := c.lock(t, "invoices")
	for i := range servers {
		c.awaitMaster(t, i, "voting")
	}
	eventually(t, "all masters hold the lock", func() bool {
		return slices.Equal(held(t, servers, "invoices"), []string{token, token, token})
	}, func() string { return strings.Join(held(t, servers, "invoices"), " ") })
	if got := c.ask(t, "DLOCK invoices 30000"); got != "$-1" {
		t.Errorf("a second DLOCK: %s", got)
	}
	if got := c.ask(t, "DUNLOCK invoices %s", token); got != ":1" {
		t.Errorf("DUNLOCK: %s", got)
	}
	eventually(t, "no master holds the lock", func() bool {
		return slices.Equal(held(t, servers, "invoices"), []string{"", "", ""})
	}, func() string { return strings.Join(held(t, servers, "invoices"), " ") })
}

// One master of three cannot prove its identity, or receives no login: it has no
// vote, its state gives the reason, and the others decide.
func TestTLSMasters_AnUnverifiedOneDoesNotVoteAndReportsWhy(t *testing.T) {
	authority, stranger := faulty.NewAuthority(t), faulty.NewAuthority(t)
	query := url.Values{"ca": {authority.CAFile}}
	good := authority.Issue("127.0.0.1")
	for name, c := range map[string]struct {
		shows faulty.Certificate
		args  []string
		says  []string
	}{
		"unknown authority": {stranger.Issue("127.0.0.1"), nil, []string{"TLS: ", "unknown authority"}},
		"another name":      {authority.Issue("other.test"), nil, []string{"TLS: ", "127.0.0.1"}},
		"wants to know who asks": {good, []string{"--tls-auth-clients", "yes", "--tls-ca-cert-file", authority.CAFile},
			[]string{"greeting: ", "correct cert= and key= of its URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			servers := append(faulty.WithTLS(good).StartGroup(t, 2), faulty.WithTLS(c.shows).Start(t, c.args...))
			bootstrapGroup(t, servers)
			var places []string
			for _, s := range servers {
				places = append(places, secured(s, "", query))
			}
			client := dial(t, serveHere(t, places))
			token := client.lock(t, "invoices")
			client.awaitMaster(t, 2, "down", c.says...)
			if got := held(t, servers, "invoices"); !slices.Equal(got, []string{token, token, ""}) {
				t.Errorf("the masters hold %q, want %q on the first two alone", got, token)
			}
			if got := client.ask(t, "DUNLOCK invoices %s", token); got != ":1" {
				t.Errorf("DUNLOCK: %s", got)
			}
		})
	}
}

// Without a verified quorum, a client receives the reason, too.
func TestTLSMasters_UnverifiedMastersReceiveNoCommands(t *testing.T) {
	servers := faulty.WithTLS(faulty.NewAuthority(t).Issue("127.0.0.1")).StartGroup(t, 3)
	bootstrapGroup(t, servers)
	query := url.Values{"ca": {faulty.NewAuthority(t).CAFile}}
	var places []string
	for _, s := range servers {
		places = append(places, secured(s, "", query))
	}
	c := dial(t, serveHere(t, places))
	for i := range servers {
		c.awaitMaster(t, i, "down", "TLS: ", "unknown authority")
	}
	got := c.ask(t, "DLOCK invoices 30000")
	if !strings.HasPrefix(got, "-NOQUORUM 0 of 3 masters answered, 2 needed") || strings.Count(got, "unknown authority") != 1 { // one reason for all
		t.Errorf("DLOCK: %s", got)
	}
	if keys := held(t, servers, "invoices"); !slices.Equal(keys, []string{"", "", ""}) {
		t.Errorf("masters that cannot prove themselves hold %q", keys)
	}
}

// The daemon's certificate is one that the masters refuse, until it is replaced and read again. The
// connections go on when the files are damaged.
func TestTLSMasters_ReadsItsCertificatesAgainOnSIGHUP(t *testing.T) {
	authority := faulty.NewAuthority(t)
	servers := faulty.WithTLS(authority.Issue("127.0.0.1")).StartGroup(t, 3, "--tls-auth-clients", "yes", "--tls-ca-cert-file", authority.CAFile)
	bootstrapGroup(t, servers)
	dir := t.TempDir()
	files := url.Values{"ca": {filepath.Join(dir, "ca")}, "cert": {filepath.Join(dir, "cert")}, "key": {filepath.Join(dir, "key")}}
	replace := func(authority *faulty.Authority, c faulty.Certificate) {
		for name, from := range map[string]string{"ca": authority.CAFile, "cert": c.CertFile, "key": c.KeyFile} {
			text, err := os.ReadFile(from)
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stranger := faulty.NewAuthority(t)
	replace(authority, stranger.Issue("daemon.test"))
	list := "--masters="
	for i, s := range servers {
		list += masterName(i) + "=" + secured(s, "", files) + ","
	}
	list = strings.TrimSuffix(list, ",")
	if code, output := typed(t, nil, "check", list); code != cli.ExitRuntime || strings.Count(output, "correct cert= and key= of its URL") != 3 {
		t.Errorf("check: code %d:\n%s", code, output)
	}
	process, address := startProcess(t, list)
	log, reloads := process.Stderr.(*faulty.Log), 0
	reload := func(says string) {
		t.Helper()
		if err := process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		reloads++
		eventually(t, says, func() bool {
			return strings.Count(log.String(), "certificates for masters") == reloads && strings.Contains(log.String(), says)
		}, log.String)
	}
	c := dial(t, address)
	for i := range servers {
		c.awaitMaster(t, i, "down", "greeting: ", "correct cert= and key= of its URL")
		if _, detail := c.master(t, i); strings.Contains(detail, "127.0.0.1:") {
			t.Errorf("the reason changes with each dial: %s", detail)
		}
	}
	replace(authority, authority.Issue("daemon.test"))
	reload(`msg="certificates for masters reloaded" file=` + files.Get("cert"))
	c.awaitVoters(t, servers)

	again := func() { // the connections of the daemon end, and it dials again
		t.Helper()
		for i, s := range servers {
			if _, err := s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the master has another connection of the daemon", func() bool {
				text, err := s.Do("CLIENT", "LIST")
				return err == nil && strings.Contains(fmt.Sprint(text), "name=redlockd")
			}, func() string { return masterName(i) })
		}
		c.awaitVoters(t, servers)
	}
	if err := os.WriteFile(files.Get("cert"), []byte("-----BEGIN CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload(`msg="reload failed; keeping previous certificates for masters" file=` + files.Get("cert"))
	again()

	// The authority of the masters is another one for the daemon: the next connections are refused.
	replace(stranger, authority.Issue("daemon.test"))
	reload(`msg="certificates for masters reloaded"`)
	if _, err := servers[2].Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); err != nil {
		t.Fatal(err)
	}
	c.awaitMaster(t, 2, "down", "unknown authority")
	c.awaitMaster(t, 0, "voting")
	replace(authority, authority.Issue("daemon.test"))
	reload(`msg="certificates for masters reloaded"`)
	c.awaitVoters(t, servers)
	c.lock(t, "invoices")
}
