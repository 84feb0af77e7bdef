package daemon

// scriptreferee_test.go: scripts that nobody has thought of, at a daemon and at a redis-server.

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"redlockd/commands/dropin"
	"redlockd/commands/dropin/textgen"
	"redlockd/pool/faulty"
)

// answer is a whole reply, of either version of the protocol.
type answer struct {
	kind  byte
	text  string
	n     int64
	items []answer
}

func (c *client) answer(t *testing.T) (a answer) {
	t.Helper()
	head := c.line(t)
	a.kind, a.text = head[0], head[1:]
	a.n, _ = strconv.ParseInt(a.text, 10, 64)
	switch {
	case a.kind == '$' && a.n >= 0:
		text := make([]byte, a.n+2)
		if _, err := io.ReadFull(c.replies, text); err != nil {
			t.Fatal(err)
		}
		a.text = string(text[:a.n])
	case a.kind == '*':
		for range a.n {
			a.items = append(a.items, c.answer(t))
		}
	case a.kind == '%':
		for range 2 * a.n {
			a.items = append(a.items, c.answer(t))
		}
	}
	return a
}

// like reports whether two replies are the same byte for byte, but for the time that has passed.
func (a answer) like(b answer) bool {
	if a.kind != b.kind || len(a.items) != len(b.items) {
		return false
	}
	for i := range a.items {
		if !a.items[i].like(b.items[i]) {
			return false
		}
	}
	if a.kind == ':' && a.n > 5 && b.n > 5 {
		most := int64(2) // seconds
		if a.n > 100 || b.n > 100 {
			most = 3000
		}
		return a.n-b.n <= most && b.n-a.n <= most
	}
	return a.kind == '*' || a.text == b.text
}

// refused is the reply to a script that did nothing.
func (a answer) refused() bool {
	return a.kind == '-' && (strings.HasPrefix(a.text, "ERR script ") || strings.HasPrefix(a.text, "ERR a lease of ") || strings.HasPrefix(a.text, "NOQUORUM "))
}

func (a answer) String() string {
	if a.items != nil {
		return fmt.Sprintf("%c%v", a.kind, a.items)
	}
	return fmt.Sprintf("%c%s", a.kind, a.text)
}

// command writes one command.
func command(to *strings.Builder, list ...string) {
	fmt.Fprintf(to, "*%d\r\n", len(list))
	for _, word := range list {
		fmt.Fprintf(to, "$%d\r\n%s\r\n", len(word), word)
	}
}

func (c *client) writes(t *testing.T, all *strings.Builder) {
	t.Helper()
	if _, err := io.WriteString(c, all.String()); err != nil {
		t.Fatal(err)
	}
	all.Reset()
}

// scriptCase is one call of a script with what its keys hold before.
type scriptCase struct {
	text       string
	keys, args []string
	held       []string // value and lease of each key, "" is free
}

var heldBefore = []string{"", textgen.Token + " 60000", "another-token 60000", textgen.Token, "another-token", textgen.Token + "x 9000", "x 60000"}

// play sends the case and returns the reply to the script, and what the keys hold then.
func (c *client) play(t *testing.T, s scriptCase) (reply answer, after []answer) {
	t.Helper()
	var all strings.Builder
	before := 0
	for i, key := range s.keys {
		value, ms, timed := strings.Cut(s.held[i], " ")
		switch {
		case value == "":
			continue
		case timed:
			command(&all, "SET", key, value, "NX", "PX", ms)
		default:
			command(&all, "SET", key, value, "NX")
		}
		before++
	}
	c.writes(t, &all)
	for range before { // what follows an acquire in its pipeline may pass its release
		if got := c.answer(t); got.text != "OK" {
			t.Fatalf("SET replies %v", got)
		}
	}
	command(&all, append(append([]string{"EVAL", s.text, strconv.Itoa(len(s.keys))}, s.keys...), s.args...)...)
	c.writes(t, &all)
	reply = c.answer(t)
	for _, key := range s.keys {
		command(&all, "GET", key)
		command(&all, "PTTL", key)
	}
	command(&all, append([]string{"DEL"}, s.keys...)...)
	c.writes(t, &all)
	for range 2 * len(s.keys) {
		after = append(after, c.answer(t))
	}
	c.answer(t)
	return reply, after
}

// A daemon replies to a script as a redis-server does, byte for byte in both versions of the protocol, and
// leaves the keys as it does; or it refuses the script and changes nothing. DROPIN_DIFFERENTIAL says how many
// scripts are written, DROPIN_SEED which.
func TestReferee_GeneratedScriptsReplyAsRedisOrAreRefused(t *testing.T) {
	t.Parallel()
	count, seed := 150, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("DROPIN_DIFFERENTIAL")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("DROPIN_SEED"), 10, 64); err == nil {
		seed = n
	}
	recogniser, err := dropin.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	redis, ours := dial(t, faulty.Start(t).Addr()), dial(t, serveHere(t, addresses(faulty.StartGroup(t, 3)), "--bootstrap", "--no-ttl=allow", "--max-ttl=24h"))
	ours.ready(t)
	random, served, refused := rand.New(rand.NewPCG(seed, 7)), 0, 0
	for i := range count {
		if i == count/2 {
			for _, c := range []*client{redis, ours} {
				c.send(t, "HELLO 3")
				if got := c.answer(t); got.kind != '%' {
					t.Fatal(got)
				}
			}
		}
		text, names, args := textgen.Script(random)
		if _, err := recogniser.Recognise("", text, dropin.ScriptCall{Keys: names, Args: args}); err != nil {
			continue
		}
		served++
		for n := range len(heldBefore) {
			s := scriptCase{text: text, args: args}
			for k := range names {
				s.keys = append(s.keys, fmt.Sprintf("{%d}:%d:%d", i, n, k))
				if s.held = append(s.held, heldBefore[n]); k > 0 {
					s.held[k] = heldBefore[random.IntN(len(heldBefore))]
				}
			}
			got, after := ours.play(t, s)
			eventually(t, "the daemon has time for a new script", func() bool {
				if strings.HasPrefix(got.text, "TRYLATER") {
					got, after = ours.play(t, s)
				}
				return !strings.HasPrefix(got.text, "TRYLATER")
			}, func() string { return got.text })
			want, then := redis.play(t, s)
			if strings.HasPrefix(got.text, "NOQUORUM") { // of a machine that is too busy: it may have done it
				refused++
				continue
			}
			if got.refused() { // it has done nothing
				refused++
				idle := s
				idle.text = "return 1"
				_, then = redis.play(t, idle)
			} else if !got.like(want) {
				t.Errorf("seed %d, script %d, args %q, keys %q: %v, Redis replies %v\n%s", seed, i, args, s.held, got, want, text)
			}
			for k := range after {
				if !after[k].like(then[k]) {
					t.Errorf("seed %d, script %d, args %q, keys %q, replied %v: the keys are then %v, in Redis %v\n%s", seed, i, args, s.held, got, after, then, text)
					break
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("seed %d: %d of %d scripts were served, %d calls of them were refused", seed, served, count, refused)
	if served < count/20 || refused > served*len(heldBefore)/4 {
		t.Errorf("seed %d: %d of %d scripts were served, and %d calls of them refused", seed, served, count, refused)
	}
}
