package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

func TestSET_TakesALockInEverySpelling(t *testing.T) {
	for _, words := range []string{
		"SET k v NX PX 8000", "set k v px 8000 nx", "SET k v EX 8 NX", "Set k v Nx Ex 8", "SET k v NX NX PX 8000",
	} {
		c, _ := dropinConversation(t, commands.Deps{})
		c.grantsAll()
		if got := c.say(words); got != "+OK" {
			t.Errorf("%s: %s", words, got)
		}
		want := redlock.LockRequest{Key: "k", Token: "v", TTL: 8 * time.Second, Mode: redlock.Valued}
		if len(c.locks.locked) != 1 || fmt.Sprint(c.locks.locked[0]) != fmt.Sprint(want) {
			t.Errorf("%s: asked for %+v", words, c.locks.locked)
		}
	}
	for _, option := range []string{"PXAT", "EXAT"} {
		c, _ := dropinConversation(t, commands.Deps{})
		c.grantsAll()
		end, unit := time.Now().Add(30*time.Second), int64(1)
		if option == "EXAT" {
			unit = 1000
		}
		if got := c.say(fmt.Sprintf("SET k v NX %s %d", option, end.UnixMilli()/unit)); got != "+OK" {
			t.Fatal(got)
		}
		if ttl := c.locks.locked[0].TTL; ttl > 30*time.Second || ttl < 10*time.Second {
			t.Errorf("%s: a lease of %v", option, ttl)
		}
	}
}

// Its next command would be refused with the lock taken.
func TestSET_OfALibraryWhoseReleaseIsNotServedIsRefusedByName(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	if got := c.say("SET @simple-redis-mutex:lock-k 0.5 NX PX 8000"); !strings.HasPrefix(got, "-ERR simple-redis-mutex is not served") || len(c.locks.locked) != 0 {
		t.Errorf("%s, and %d locks were requested", got, len(c.locks.locked))
	}
	if got := c.say("SET simple-redis-mutex 0.5 NX PX 8000"); got != "+OK" {
		t.Errorf("another key: %s", got)
	}
}

func TestSET_AnswersNilForALockThatIsHeldAndErrorsForWhatIsUnknown(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{NoTTL: commands.PolicyLease})
	c.refusesAll()
	c.transcript(`
		> SET k v NX PX 8000
		< nil
		> SETNX k v
		< :0
	`)
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) {
		return redlock.Grant{}, &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5}
	}
	if got := c.say("SET k v NX PX 8000"); !strings.HasPrefix(got, "-NOQUORUM 2 of 5") {
		t.Error(got)
	}
}

// A lease that is over takes no lock, and Redis replies to it like to any other.
func TestSET_WithAnExpiryThatIsOverRepliesAsRedisDoes(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.views["held"] = redlock.View{Kind: "string", Value: "hello", Left: time.Second}
	c.transcript(`
		> SET free v NX EXAT 1
		< +OK
		> SET free v NX PXAT 1000
		< +OK
		> SET held v NX EXAT 1
		< nil
	`)
	o.failure = &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5}
	if got := c.say("SET free v NX EXAT 1"); !strings.HasPrefix(got, "-NOQUORUM 2 of 5") {
		t.Error(got)
	}
	if len(c.locks.locked) > 0 || len(o.written) > 0 {
		t.Errorf("it reached the masters: %+v %+v", c.locks.locked, o.written)
	}
}

func TestSET_ThatIsNoLockIsRefused(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	for words, want := range map[string]string{
		"SET k v":                           "-ERR redlockd is not a database",
		"SET k v PX 1000":                   "-ERR redlockd is not a database",
		"SET k v PX 10":                     "-ERR redlockd is not a database",
		"SET k v NX GET PX 1000":            "-ERR redlockd is not a database",
		"SET k v XX KEEPTTL":                "-ERR redlockd is not a database",
		"SET k":                             "-ERR wrong number of arguments for 'set' command",
		"SET k v NX XX PX 1000":             "-ERR syntax error",
		"SET k v NX PX 0":                   "-ERR invalid expire time in 'set' command",
		"SET k v NX PX x":                   "-ERR value is not an integer or out of range",
		"SET k v NX PX 9":                   "-ERR a lease of 9 ms is too short, allowed are 10 to 60000 ms",
		"SET k \"\" NX PX 1000":             "-ERR a lock's value of 0 bytes is refused, allowed are 1 to 1024",
		"SET redlockd:seal v NX PX 1000":    "-ERR invalid lock name 'redlockd:seal'",
		"SET k v NX PX 9223372036854775807": "-ERR a lease of 9223372036854775807 ms exceeds max-ttl",
		"SET k v NX":                        "-ERR a lock without an expiry is refused",
		"SETNX k v":                         "-ERR a lock without an expiry is refused",
	} {
		if got := c.say(words); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", words, got)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("a refused request reached the masters: %+v", c.locks.locked)
	}
}

func TestSET_FollowsThePoliciesForLeases(t *testing.T) {
	for _, p := range []struct {
		env   commands.Deps
		words string
		want  time.Duration
	}{
		{commands.Deps{LongTTL: commands.PolicyClamp}, "SET k v NX PX 900000000000000", time.Minute},
		{commands.Deps{NoTTL: commands.PolicyLease}, "SET k v NX", time.Minute},
		{commands.Deps{NoTTL: commands.PolicyAllow}, "SETNX k v", redlock.Endless},
	} {
		c, _ := dropinConversation(t, p.env)
		c.grantsAll()
		if got := c.say(p.words); got != "+OK" && got != ":1" {
			t.Errorf("%s: %s", p.words, got)
		}
		if got := c.locks.locked[0].TTL; got != p.want {
			t.Errorf("%s: a lease of %v, want %v", p.words, got, p.want)
		}
	}
}

func TestSET_ALockWhoseReplyWasNotReadIsGivenBack(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	sink := c.start("SET", "k", "v", "NX", "PX", "8000")
	sink.late.Undelivered()
	sink.late.Undelivered()
	if !slices.Equal(c.locks.givenBack, []redlock.Token{"v"}) {
		t.Errorf("given back %q, want v once", c.locks.givenBack)
	}
	// The answer was held up for longer than the copies outlive their lease.
	clock := &stillClock{now: time.Second}
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		return grant(t, r.Token, 41, 7*time.Second, clock), nil
	}
	sink = c.start("SET", "k", "w", "NX", "PX", "8000")
	clock.now += 101 * time.Millisecond
	if got := show(sink.read(t)); !strings.HasPrefix(got, "-EXPIRED") || len(c.locks.givenBack) != 2 {
		t.Errorf("%s, given back %q", got, c.locks.givenBack)
	}
	// What has expired may be another's with the same value.
	c.locks.givenBack = nil
	sink = c.start("SET", "k", "w", "NX", "PX", "8000")
	clock.now += time.Minute
	sink.late.Undelivered()
	if len(c.locks.givenBack) > 0 {
		t.Errorf("given back %q after its time", c.locks.givenBack)
	}
}

func TestSET_WithXXAndIFEQChangesALockThatIsHeld(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.wrote = true
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		if r.Token != "v" {
			return redlock.Grant{}, redlock.ErrNotHeld
		}
		return grant(t, r.Token, 0, r.TTL, &stillClock{}), nil
	}
	c.transcript(`
		> SET k w XX PX 8000
		< +OK
		> SET k v IFEQ v PX 9000
		< +OK
		> SET k u PX 9000 IFEQ u
		< nil
		> SET k new IFEQ v PX 7000
		< +OK
	`)
	want := []redlock.WriteRequest{
		{Key: "k", Effect: redlock.WriteReplaces, Value: "w", TTL: 8 * time.Second},
		{Key: "k", Effect: redlock.WriteReplaces, Value: "new", Equal: "v", TTL: 7 * time.Second},
	}
	if !slices.Equal(o.written, want) || len(c.locks.extended) != 2 {
		t.Errorf("%+v, %+v", o.written, c.locks.extended)
	}
	o.wrote = false
	c.transcript(`
		> SET k w XX PX 8000
		< nil
		> SET k new IFEQ v PX 7000
		< nil
	`)
}

func TestDEL_CountsLocksAndComparesWhereRequested(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.wrote = true
	c.locks.unlock = func(r redlock.UnlockRequest) (bool, error) { return r.Token == "v", nil }
	c.transcript(`
		> DEL a b c
		< :3
		> unlink a
		< :1
		> DELEX k IFEQ v
		< :1
		> delex k ifeq w
		< :0
		> DELIFEQ k v
		< :1
		> DELEX k IFEQ
		< -ERR wrong number of arguments for 'delex' command
		> DELEX k NX v
		< -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
		> EXPIRE a 20
		< :1
		> PEXPIRE a 20000
		< :1
		> PEXPIRE a 0
		< :1
		> PEXPIRE a x
		< -ERR value is not an integer or out of range
	`)
	last := o.written[len(o.written)-3:]
	if last[0].TTL != 20*time.Second || last[1].TTL != 20*time.Second || last[2].Effect != redlock.WriteDeletes {
		t.Errorf("%+v", last)
	}
	o.failure = errors.New("undecided")
	if got := c.say("DEL a b"); !strings.HasPrefix(got, "-ERR undecided") {
		t.Error(got)
	}
}

// The digest of "hello", which a Redis 8.4 gives it.
const helloDigest = "9555e8555c62dcfd"

// SET and DELEX with IFNE, IFDEQ and IFDNE read the value, and write only while it is there.
func TestSET_ComparesDigestsAndDifferencesWithWhatItReads(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.wrote = true
	c.grantsAll()
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		return grant(t, r.Token, 0, r.TTL, &stillClock{}), nil
	}
	var released []redlock.Token
	c.locks.unlock = func(r redlock.UnlockRequest) (bool, error) { released = append(released, r.Token); return true, nil }
	o.views["k"] = redlock.View{Kind: "string", Value: "hello", Left: time.Second}
	o.views["list"] = redlock.View{Kind: "list"}
	c.transcript(`
		> DIGEST k
		< "9555e8555c62dcfd"
		> DIGEST free
		< nil
		> DIGEST list
		< -WRONGTYPE Operation against a key holding the wrong kind of value
		> SET k w IFDEQ 0000000000000000 PX 8000
		< nil
		> SET free w IFDEQ 9555e8555c62dcfd PX 8000
		< nil
		> SET k w IFNE hello PX 8000
		< nil
		> SET k w IFDNE 9555E8555C62DCFD PX 8000
		< nil
		> DELEX k IFNE hello
		< :0
		> DELEX k IFDNE 9555e8555c62dcfd
		< :0
		> DELEX k IFDEQ zzzzzzzzzzzzzzzz
		< :0
		> DELEX free IFNE w
		< :0
		> DELEX list IFNE w
		< -ERR Key should be of string type if conditions are specified
		> DELEX list IFDEQ 9555e8555c62dcfd
		< -ERR Key should be of string type if conditions are specified
		> DELEX k IFDEQ 12
		< -ERR must be exactly 16 hexadecimal characters
		> SET k w IFDNE 12 PX 8000
		< -ERR must be exactly 16 hexadecimal characters
	`)
	if got := c.say("SET list w IFNE v PX 8000"); !strings.HasPrefix(got, "-WRONGTYPE Operation against a key holding the wrong kind of value") {
		t.Error(got)
	}
	if len(o.written) > 0 || len(c.locks.locked) > 0 || len(released) > 0 {
		t.Fatalf("written %+v, locked %+v, released %q", o.written, c.locks.locked, released)
	}
	c.transcript(`
		> SET k w IFDEQ 9555e8555c62dcfd PX 8000
		< +OK
		> SET k hello IFDEQ 9555e8555c62dcfd PX 8000
		< +OK
		> SET k w IFNE v PX 8000
		< +OK
		> SET k w IFDNE 0000000000000000 PX 8000
		< +OK
		> SET free w IFNE v PX 8000
		< +OK
		> DELEX k IFNE v
		< :1
		> DELEX k IFDNE zzzzzzzzzzzzzzzz
		< :1
		> DELEX k IFDEQ 9555e8555c62dcfd
		< :1
	`)
	replaced := redlock.WriteRequest{Key: "k", Effect: redlock.WriteReplaces, Value: "w", Equal: "hello", TTL: 8 * time.Second}
	deleted := redlock.WriteRequest{Key: "k", Effect: redlock.WriteDeletes, Equal: "hello"}
	if want := []redlock.WriteRequest{replaced, replaced, replaced, deleted, deleted}; !slices.Equal(o.written, want) {
		t.Errorf("written %+v", o.written)
	}
	if len(c.locks.locked) != 1 || c.locks.locked[0].Key != "free" || len(c.locks.extended) != 1 || !slices.Equal(released, []redlock.Token{"hello"}) {
		t.Errorf("locked %+v, extended %+v, released %q", c.locks.locked, c.locks.extended, released)
	}
	o.failure = errors.New("undecided")
	for _, words := range []string{"SET k w IFNE v PX 8000", "SET k w IFDEQ " + helloDigest + " PX 8000", "DELEX k IFNE v", "DIGEST k"} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR undecided") {
			t.Errorf("%s: %s", words, got)
		}
	}
}

func TestSET_ReadsFirstOnlyForComparisonsThatNeedIt(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	for line, want := range map[string]bool{
		"SET k v NX PX 5": false, "SET k v IFEQ v PX 5": false, "SET k v ifne v PX 5": true, "SET k v PX 5 IFDEQ x": true, "SET IFNE IFNE NX": false,
		"DELEX k IFEQ v": false, "DELIFEQ k v": false, "DELEX k": true, "DELEX k IFDNE v": true, "SET": false,
	} {
		if got := c.table.Plan(strings.Fields(line)).Barrier; got != want {
			t.Errorf("%s: barrier is %t", line, got)
		}
	}
}

// Where the key is no lock, Redis answers a comparison by WRONGTYPE, not by a no.
func TestDELEX_AnswersAsRedisDoesWhereTheKeyIsNoString(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return false, nil }
	c.locks.extend = func(redlock.ExtendRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrNotHeld }
	o.views["list"] = redlock.View{Kind: "list"}
	o.views["other"] = redlock.View{Kind: "string", Value: "w"}
	for words, want := range map[string]string{
		"DELEX list IFEQ v":              "-ERR Key should be of string type if conditions are specified",
		"DELIFEQ list v":                 "-WRONGTYPE ",
		"SET list v IFEQ v PX 8000":      "-WRONGTYPE ",
		`EVAL "` + drops + `" 1 list v`:  "-WRONGTYPE ",
		"DELEX other IFEQ v":             ":0",
		"DELEX free IFEQ v":              ":0",
		`EVAL "` + drops + `" 1 other v`: ":0",
	} {
		sink := c.start(splitWords(t, words)...)
		if got := show(sink.wait(t)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	// EXEC compares with what GET has seen: nil if it has changed, whatever is there now.
	o.views["changed"] = redlock.View{Kind: "string", Value: "v", Left: time.Second}
	c.say("WATCH changed")
	c.say("GET changed")
	c.say("MULTI")
	c.say("DEL changed")
	o.views["changed"] = redlock.View{Kind: "list"}
	if got := c.say("EXEC"); got != "?9" {
		t.Errorf("EXEC: %s", got)
	}
	o.failure = errors.New("undecided") // the comparison itself is decided
	if got := c.say("DELEX list IFEQ v"); got != ":0" {
		t.Error(got)
	}
}

func TestMSETEX_TakesAllLocksOrNone(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	c.transcript(`
		> MSETEX 2 a token-a b token-b NX PX 8000
		< :1
		> MSETEX 1 a token-a NX
		< -ERR a lock without an expiry is refused: its holder may die; give a lease, or see --no-ttl (lease: it lasts 60000 ms)
		> MSETEX 2 a token-a a token-b NX PX 8000
		< -ERR key 'a' is given twice
		> MSETEX 2 a token-a b
		< -ERR wrong number of key-value pairs
		> MSETEX x a token-a
		< -ERR invalid numkeys value
	`)
	for _, words := range []string{"MSETEX 1 a token-a PX 8000", "MSETEX 1 a token-a XX PX 8000", "MSETEX 1 a token-a NX KEEPTTL"} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR redlockd is not a database: MSETEX takes locks with NX") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := c.say("HSETNX k f v"); !strings.Contains(got, "HSETNX takes a field of a hash") || !strings.Contains(got, "DLOCK key ttl") {
		t.Error(got)
	}
	if len(c.locks.locked) != 1 {
		t.Fatalf("%+v", c.locks.locked)
	}
	r := c.locks.locked[0]
	if r.Key != "a" || !slices.Equal(r.More, []redlock.Key{"b"}) || r.TTL != 8*time.Second ||
		!slices.Equal(swapOf(r).Tokens, []redlock.Token{"token-a", "token-b"}) || r.Token != "token-a" {
		t.Errorf("%+v", r)
	}
	c.refusesAll()
	if got := c.say("MSETEX 2 a token-a b token-b NX PX 8000"); got != ":0" {
		t.Error(got)
	}
}

// A user who may only lock must not take locks from others.
func TestDEL_WithoutTheHoldersValueNeedsTheCategoryForce(t *testing.T) {
	user := access.Everything("me", "p")
	user.Commands = []string{access.CategoryLock, access.CategoryRead}
	users, err := access.NewUsers([]access.User{user})
	if err != nil {
		t.Fatal(err)
	}
	c, o := dropinConversation(t, commands.Deps{Users: users})
	c.client.User = "me"
	o.wrote = true
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
	for _, words := range []string{"DELEX k", "DELEX k IFNE v", "DELEX k IFDNE 0123456789abcdef", "SET k v IFNE w PX 1000", "SET k v IFDNE 0123456789abcdef PX 1000", "DEL k", "UNLINK k", "EXPIRE k 5", "PEXPIRE k 5000", "SET k v XX PX 1000", `EVAL "return redis.call('del', KEYS[1])" 1 k`} {
		sink := c.start(splitWords(t, words)...)
		if got := show(sink.wait(t)); !strings.HasPrefix(got, "-NOPERM") {
			t.Errorf("%s: %s", words, got)
		}
	}
	for _, words := range []string{"SET k v PX 1000", "SET k v", "SET k v GET PX 1000"} { // served to no user
		if got := c.say(words); !strings.HasPrefix(got, "-ERR redlockd is not a database") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := c.say("DELEX k IFEQ v"); got != ":1" || len(o.written) > 0 {
		t.Errorf("%s, %+v", got, o.written)
	}
}

// A lock that is held may end as early as its client likes: refused, it would stay as long as it was.
func TestSET_AShorterLeaseThanTheLeastIsTheLeast(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.wrote = true
	o.views["k"] = redlock.View{Kind: "string", Value: "v", Left: time.Minute}
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		return grant(t, r.Token, 0, r.TTL, &stillClock{}), nil
	}
	c.transcript(`
		> SET k v PX 5 IFEQ v
		< +OK
		> SET k w XX PX 5
		< +OK
		> SET k w PXAT 1000 IFEQ v
		< +OK
		> PEXPIRE k 5
		< :1
		> SET k w PX 9
		< +OK
		> SET k "" EXAT 1
		< +OK
		> PEXPIRE k 50000 GT
		< :0
		> PEXPIRE k 5 LT
		< :1
	`)
	if len(c.locks.extended) != 1 || c.locks.extended[0].TTL != 10*time.Millisecond || !c.locks.extended[0].Exact {
		t.Errorf("%+v", c.locks.extended)
	}
	var done []string
	for _, r := range o.written {
		done = append(done, fmt.Sprint(r.Effect, r.TTL, r.Equal, r.Only))
	}
	want := []string{"2 10ms", "2 10msv", "1 10ms", "0 0s", "0 0s", "1 10msv<"}
	if !slices.Equal(done, want) {
		t.Errorf("%q, want %q", done, want)
	}
}
