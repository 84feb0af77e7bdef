package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ten thousand connections guess from one address while others sign in: how
// many passwords are looked at is a matter of the clock alone, and the clock
// moves only where the test says so.
func TestThrottle_TenThousandWrongLoginsCostTenLooksASecondAndOthersNothing(t *testing.T) {
	const guesses, seconds = 10_000, 4
	c, users := guarded(t, Everything("default", "pw"))
	now := time.Now()
	users.now = func() time.Time { return now }
	looks, real := 0, users.hash
	users.hash = func(b []byte) [32]byte { looks++; return real(b) }
	said := map[string]int{}
	served := 0
	for i := range guesses {
		if i > 0 && i%(guesses/seconds) == 0 {
			now = now.Add(time.Second)
		}
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		word, _, _ := strings.Cut(c.words("AUTH", fmt.Sprint("guess-", i)), " ")
		said[word]++
		if i%10 == 0 { // one login of somebody else for ten guesses
			c.client = &Client{Host: fmt.Sprint("10.0.1.", i%250), Proto: 2}
			if c.say("AUTH pw") == "+OK" && c.say("PING") == "+PONG" {
				served++
			}
		}
	}
	if want := failuresPerSecond * seconds; said["-WRONGPASS"] != want || looks != want+served {
		t.Errorf("%d guesses were judged with %d looks at passwords, want %d and %d", said["-WRONGPASS"], looks, want, want+served)
	}
	if want := guesses - failuresPerSecond*seconds; said["-TRYLATER"] != want {
		t.Errorf("answers %v, want %d times TRYLATER", said, want)
	}
	if served != guesses/10 {
		t.Errorf("%d logins from other addresses were served, want all %d", served, guesses/10)
	}
	if n := len(users.failures.buckets); n != 1 {
		t.Errorf("%d addresses are remembered, want the guesser's alone", n)
	}
}

// A guesser never gets in by the way, and a guesser who knows the password has
// to wait like one who does not.
func TestThrottle_TheRightPasswordIsNotLookedAtEither(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"))
	for range failuresPerSecond {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		c.say("AUTH wrong")
	}
	users.hash = func([]byte) [32]byte { t.Error("a password was looked at"); return [32]byte{} }
	for _, line := range []string{"AUTH pw", "AUTH default pw", "HELLO 3 AUTH default pw"} {
		c.client = &Client{Host: "10.0.0.1", Proto: 2}
		if got := c.say(line); !strings.HasPrefix(got, "-TRYLATER") || c.client.User != "" {
			t.Errorf("%s: %s, signed in as %q", line, got, c.client.User)
		}
	}
}
