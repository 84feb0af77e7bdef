package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ten thousand connections guess from one address while others log in: how many
// passwords are checked depends on the clock alone, and the test moves the clock.
func TestLoginLimit_TenThousandWrongLoginsCostAFewChecksASecondAndOthersNothing(t *testing.T) {
	const guesses, seconds = 10_000, 4
	c, users := guarded(t, Everything("default", "pw"), low())
	now := time.Now()
	users.Now = func() time.Time { return now }
	checks, real := 0, users.hash
	users.hash = func(b []byte) [32]byte { checks++; return real(b) }
	replies := map[string]int{}
	served := 0
	for i := range guesses {
		if i > 0 && i%(guesses/seconds) == 0 {
			now = now.Add(time.Second)
		}
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		word, _, _ := strings.Cut(c.words("AUTH", fmt.Sprint("guess-", i)), " ")
		replies[word]++
		if i%10 == 0 { // one login of another client for ten guesses
			c.client = &Client{Host: fmt.Sprint("10.0.1.", i%250), Proto: 2}
			if c.say("AUTH pw") == "+OK" && c.say("PING") == "+PONG" {
				served++
			}
		}
	}
	if want := (hostFailures + reservedChecks) * seconds; checks != want+served {
		t.Errorf("%d passwords were checked, want %d and %d", checks, want, served)
	}
	if want := hostFailures * seconds; replies["-WRONGPASS"] != want {
		t.Errorf("%d guesses were answered WRONGPASS, want %d: reserved checks must not show", replies["-WRONGPASS"], want)
	}
	if want := guesses - hostFailures*seconds; replies["-TRYLATER"] != want {
		t.Errorf("answers %v, want %d times TRYLATER", replies, want)
	}
	if served != guesses/10 {
		t.Errorf("%d logins from other addresses were served, want all %d", served, guesses/10)
	}
	if n := len(users.port.hosts.limiters); n != 1 {
		t.Errorf("%d addresses are remembered, want the guesser's alone", n)
	}
}

// Behind one address: guesses at another name, or at many names, never keep a user
// out that logs in correctly, for the first time or again.
func TestLoginLimit_OtherNamesBehindTheSameAddressLockNoUserOut(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"), low())
	now := time.Now()
	users.Now = func() time.Time { return now }
	for i := range 5000 {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		c.words("AUTH", fmt.Sprint("name-", i%700), "wrong")
		if i%1000 == 0 {
			now = now.Add(time.Second / 20)
		}
		if i%100 == 99 {
			c.client = &Client{Host: "10.0.0.1", Proto: 2}
			if got := c.say("AUTH low new"); got != "+OK" {
				t.Fatalf("after %d guesses: %s", i+1, got)
			}
		}
	}
}

// One name is guarded from guesses by many addresses, and its user is still served
// where it has logged in before.
func TestLoginLimit_ManyAddressesShareTheLimitOfAName(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"), low())
	now := time.Now()
	users.Now = func() time.Time { return now }
	from := func(host, password string) string {
		c.client = &Client{Host: host, Proto: 2}
		word, _, _ := strings.Cut(c.words("AUTH", "low", password), " ")
		return word
	}
	if got := from("10.1.0.1", "new"); got != "+OK" {
		t.Fatal(got)
	}
	checks, real := 0, users.hash
	users.hash = func(b []byte) [32]byte { checks++; return real(b) }
	for i := range 1000 {
		from(fmt.Sprintf("10.0.%d.%d", i/250, i%250), "wrong")
	}
	if want := userFailures + reservedChecks; checks != want {
		t.Errorf("%d passwords were checked for one name within a moment, want %d", checks, want)
	}
	if got := from("10.1.0.1", "new"); got != "+OK" {
		t.Errorf("where the user has logged in before: %s", got)
	}
	if got := from("10.1.0.2", "new"); got != "-TRYLATER" {
		t.Errorf("elsewhere, beyond all limits: %s", got)
	}
	now = now.Add(time.Second)
	if got := from("10.1.0.2", "new"); got != "+OK" {
		t.Errorf("elsewhere, a second later: %s", got)
	}
}

// A guesser who finds the password beyond all limits is not let in.
func TestLoginLimit_BeyondAllLimitsTheRightPasswordIsNotChecked(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"))
	for range hostFailures + reservedChecks {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		c.say("AUTH wrong")
	}
	users.hash = func([]byte) [32]byte { t.Error("a password was checked"); return [32]byte{} }
	for _, line := range []string{"AUTH pw", "AUTH default pw", "HELLO 3 AUTH default pw"} {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		if got := c.say(line); !strings.HasPrefix(got, "-TRYLATER") || c.client.User != "" {
			t.Errorf("%s: %s, signed in as %q", line, got, c.client.User)
		}
	}
}

// The admin endpoint and the port do not share a limit.
func TestLoginLimit_EntrancesAreSeparate(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"))
	for range 100 {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		c.say("AUTH wrong")
	}
	if _, err := users.Authenticate("10.0.0.1", "default", "pw"); err != nil {
		t.Errorf("guesses at the port: the admin endpoint refuses with %v", err)
	}
	for range 100 {
		_, _ = users.Authenticate("10.0.0.2", "default", "wrong")
	}
	if _, err := users.Authenticate("10.0.0.2", "default", "pw"); !errors.Is(err, ErrTooManyFailures) {
		t.Errorf("guesses at the admin endpoint end with %v, want %v", err, ErrTooManyFailures)
	}
	c.client = &Client{Host: "10.0.0.2", Proto: 2}
	if got := c.say("AUTH pw"); got != "+OK" {
		t.Errorf("guesses at the admin endpoint: the port answers %s", got)
	}
}
