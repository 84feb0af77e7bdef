package daemon

import (
	"net/url"
	"slices"
	"strings"
	"testing"

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
			[]string{"tls: certificate required"}},
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
	if !strings.HasPrefix(got, "-NOQUORUM 0 of 3 masters answered, 2 needed") || strings.Count(got, "unknown authority") != 3 {
		t.Errorf("DLOCK: %s", got)
	}
	if keys := held(t, servers, "invoices"); !slices.Equal(keys, []string{"", "", ""}) {
		t.Errorf("masters that cannot prove themselves hold %q", keys)
	}
}
