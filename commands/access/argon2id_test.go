package access

import (
	"encoding/base64"
	"strings"
	"testing"
)

// cheap is Argon2id of a password with the smallest costs.
func cheap(t *testing.T, password string) string {
	t.Helper()
	h := argonHash{memory: 8, passes: 1, lanes: 1, salt: []byte("12345678")}
	text := "$argon2id$v=19$m=8,t=1,p=1$MTIzNDU2Nzg$" + base64Of(h.of(password, 32))
	if _, err := parseArgon(text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestArgon2id_IsAcceptedBesideSHA256(t *testing.T) {
	mixed := low()
	mixed.Argon2id = []string{cheap(t, "third")}
	c, users := guarded(t, mixed, User{Name: "slow", Argon2id: []string{HashPassword("pw")}, Commands: []string{"lock"}})
	for line, want := range map[string]string{
		"AUTH low old": "+OK", "AUTH low third": "+OK", "AUTH slow pw": "+OK",
		"AUTH low pw": "-WRONGPASS", "AUTH slow third": "-WRONGPASS", "AUTH nobody pw": "-WRONGPASS",
	} {
		c.client = &Client{Host: "10.0.0." + line, Proto: 2}
		if got := c.say(line); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	// The second login with the same password computes no hash.
	hash := users.Find("slow").argon[0]
	hash.salt = []byte("another salt")
	if ok, err := users.check("slow", "pw"); !ok || err != nil {
		t.Errorf("a password that fitted before: %v, %v", ok, err)
	}
	if ok, _ := users.check("slow", "other"); ok {
		t.Error("another password is accepted")
	}
}

// What a failed login costs does not reveal whether the user exists or which kind of
// password they have.
func TestArgon2id_EveryFailureChecksAsManyHashes(t *testing.T) {
	mixed := low()
	mixed.Argon2id = []string{cheap(t, "a"), cheap(t, "b")}
	_, users := guarded(t, mixed, Everything("default", "pw"))
	all := users.roster.Load()
	for _, n := range []int{len(all.decoys), len(all.users["low"].argon), len(all.users["default"].argon)} {
		if n != 2 {
			t.Errorf("%d hashes are checked, want 2 for every user", n)
		}
	}
}

func TestArgon2id_LoginsBeyondTheQueueAreRefused(t *testing.T) {
	c, users := guarded(t, User{Name: "slow", Argon2id: []string{cheap(t, "pw")}, Commands: []string{"lock"}})
	users.argon.waiting.Store(maxArgonQueue)
	if got := c.say("AUTH slow pw"); got != "-TRYLATER too many logins are being checked at once; try again in a second" {
		t.Error(got)
	}
	users.argon.waiting.Store(0)
	c.client = &Client{Host: "10.0.0.9", Proto: 2}
	if got := c.say("AUTH slow pw"); got != "+OK" {
		t.Error(got)
	}
	if n := users.argon.waiting.Load(); n != 0 {
		t.Errorf("%d logins are counted as waiting", n)
	}
}

func TestArgon2id_RefusesTextsOfAnotherFormAndCostsBeyondTheLimits(t *testing.T) {
	good := cheap(t, "pw")
	for _, bad := range []string{
		"", "pw", "$argon2i" + good[9:], strings.Replace(good, "v=19", "v=16", 1), strings.Replace(good, "m=8", "m=262145", 1),
		strings.Replace(good, "m=8", "m=08", 1), strings.Replace(good, "t=1", "t=11", 1), strings.Replace(good, "p=1", "p=17", 1),
		strings.Replace(good, "p=1", "p=1,x=2", 1), strings.Replace(good, "MTIzNDU2Nzg", "MTI", 1), strings.Replace(good, "MTIzNDU2Nzg", "!", 1), good + "$",
	} {
		_, err := NewUsers([]User{{Name: "a", Argon2id: []string{bad}}})
		if err == nil || !strings.Contains(err.Error(), "redlockd hash-password") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func base64Of(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }
