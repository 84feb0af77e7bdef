package access

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

// conversation is a client that logs in, over one connection after another.
type conversation struct {
	t      *testing.T
	users  *Users
	client *Client
}

// Client is one connection.
type Client struct {
	Host, User string
	Proto      int
	member     Member
}

// guarded is a conversation with these users; the clock stands.
func guarded(t *testing.T, list ...User) (*conversation, *Users) {
	t.Helper()
	users, err := NewUsers(list)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	users.Now = func() time.Time { return now }
	return &conversation{t, users, &Client{Host: "10.0.0.9", Proto: 2}}, users
}

func (c *conversation) say(line string) string { return c.words(strings.Fields(line)...) }

// words logs in by [AUTH, password], [AUTH, name, password] or [HELLO, 3, AUTH, name, password];
// [PING] only tells whether the connection has a user.
func (c *conversation) words(words ...string) string {
	c.t.Helper()
	name, password := DefaultUser, words[len(words)-1]
	switch {
	case words[0] == "PING" && c.client.User == "":
		return "-NOAUTH"
	case words[0] == "PING":
		return "+PONG"
	case len(words) > 2:
		name = words[len(words)-2]
	}
	name, err := c.users.SignIn(&c.client.member, c.client.Host, name, password)
	if err != nil {
		return fmt.Sprint("-", err)
	}
	c.client.User = name
	return "+OK"
}

func digest(password string) [32]byte { return sha256.Sum256([]byte(password)) }

// low may lock a:* and nothing else.
func low() User {
	return User{Name: "low", Passwords: [][32]byte{digest("old"), digest("new")}, Keys: []string{"a:*"}, Commands: []string{"lock", "id"}}
}

// Who guesses must not learn from the work done which names exist.
func TestAUTH_DoesTheSameWorkForEveryFailure(t *testing.T) {
	c, users := guarded(t, Everything("default", "pw"), low(), User{Name: "off", Passwords: [][32]byte{digest("pw")}, Disabled: true})
	hashes := 0
	real := users.hash
	users.hash = func(b []byte) [32]byte { hashes++; return real(b) }
	for _, line := range []string{"AUTH wrong", "AUTH nobody pw", "AUTH low wrong", "AUTH off pw", "HELLO 2 AUTH nobody x", "AUTH pw"} {
		hashes = 0
		c.say(line)
		if hashes != 1 {
			t.Errorf("%s: %d hashes, want 1", line, hashes)
		}
	}
	// That as many digests are compared for a user as for none is a matter of
	// types: both are arrays of one length.
}

func TestThrottle_IsBoundedAndRecoversInTime(t *testing.T) {
	th := newThrottle(hostFailures)
	now := time.Now()
	for i := range maxLimiters + 500 {
		th.take(string(rune(i+1)), now)
	}
	if n := len(th.limiters); n > maxLimiters {
		t.Errorf("%d names are remembered", n)
	}
	if th.hasToken("another", now) {
		t.Error("beyond the bound there is no limit at all")
	}
	now = now.Add(time.Minute)
	if !th.hasToken("another", now) {
		t.Error("nothing was forgiven")
	}
	th.take("another", now)
	if n := len(th.limiters); n != 1 {
		t.Errorf("%d names are remembered after a minute, want 1", n)
	}
	for i := range maxLimiters + 500 {
		th.keep(string(rune(i + 1)))
	}
	if n := len(th.limiters); n != maxLimiters || !th.has(string(rune(maxLimiters+500))) {
		t.Errorf("%d names are kept, want %d with the last one", n, maxLimiters)
	}
}

func TestNewUsers_ReportsWhatIsWrong(t *testing.T) {
	with := func(change func(*User)) User { u := low(); change(&u); return u }
	for part, user := range map[string]User{
		"has no password":                            with(func(u *User) { u.Passwords = nil }),
		"5 passwords, allowed are 1 to 4":            with(func(u *User) { u.Passwords = make([][32]byte, 5) }),
		`category "fly", allowed are lock, read, id`: with(func(u *User) { u.Commands = []string{"fly"} }),
		`key pattern "a[b]", which holds [`:          with(func(u *User) { u.Keys = []string{"a[b]"} }),
		"name that is not 1 to 128 visible":          with(func(u *User) { u.Name = "a b" }),
		"allowed are 0 (no limit) and more":          with(func(u *User) { u.Held = -1 }),
	} {
		if _, err := NewUsers([]User{user}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
	if _, err := NewUsers([]User{low(), low()}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}
