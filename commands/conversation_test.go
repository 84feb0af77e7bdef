// Tests of commands are conversations: what a client types and what it reads,
// with the masters' side played by fakeLocks.

package commands_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// conversation is one client talking to a table.
type conversation struct {
	t      *testing.T
	table  *commands.Table
	client *commands.Client
	locks  *fakeLocks
	deps   commands.Deps // of the table
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{t: t, locks: &fakeLocks{}, client: &commands.Client{ID: 7, Addr: "10.0.0.9:5555", Proto: 2}}
	c.serve(commands.Deps{Locks: c.locks, Databases: 16, MaxTTL: time.Minute})
	return c
}

// serve gives the client a table with these dependencies.
func (c *conversation) serve(deps commands.Deps) { c.deps, c.table = deps, newTable(deps) }

// transcript plays lines "> words" and compares with the line or lines "< reply".
func (c *conversation) transcript(script string) {
	c.t.Helper()
	var sent, expected string
	check := func() {
		c.t.Helper()
		if sent == "" {
			return
		}
		if got := c.say(sent); got != expected {
			c.t.Errorf("> %s\n got %s\nwant %s", sent, got, expected)
		}
	}
	for _, line := range strings.Split(script, "\n") {
		line = strings.TrimLeft(line, "\t")
		switch {
		case strings.HasPrefix(line, "> "):
			check()
			sent = line[2:]
		case strings.HasPrefix(line, "< "):
			expected = line[2:]
		case line != "":
			c.t.Fatalf("a transcript has lines with > and <, not %q", line)
		}
	}
	check()
}

// say sends one line of words, which may be quoted as in Go.
func (c *conversation) say(line string) string {
	c.t.Helper()
	return c.words(splitWords(c.t, line)...)
}

// words sends one command and reads its reply at once.
func (c *conversation) words(args ...string) string {
	c.t.Helper()
	return show(c.start(args...).read(c.t))
}

// start sends one command; its reply is in the sink when it is there.
func (c *conversation) start(args ...string) *fakeCompleter {
	sink := &fakeCompleter{t: c.t}
	c.table.Dispatch(&commands.Call{Args: args, Client: c.client, Batch: new(redlock.Batch), Completer: sink})
	return sink
}

// fakeCompleter takes one answer and fails the test at a second one.
type fakeCompleter struct {
	t       *testing.T
	mu      sync.Mutex
	reply   commands.Reply
	late    commands.DeferredReply
	answers int
}

func (f *fakeCompleter) Complete(r commands.Reply)                 { f.count(r, nil) }
func (f *fakeCompleter) CompleteDeferred(l commands.DeferredReply) { f.count(commands.Reply{}, l) }

func (f *fakeCompleter) count(r commands.Reply, l commands.DeferredReply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reply, f.late = r, l
	if f.answers++; f.answers > 1 {
		f.t.Errorf("a call was answered %d times", f.answers)
	}
}

// read is the moment the reply is written.
func (f *fakeCompleter) read(t *testing.T) commands.Reply {
	t.Helper()
	if f.answers != 1 {
		t.Fatalf("the call has %d answers instead of one", f.answers)
	}
	if f.late != nil {
		return f.late.Reply()
	}
	return f.reply
}

// fakeLocks plays the masters. A nil function means that nothing is answered;
// the completions are kept for the test to call.
type fakeLocks struct {
	commands.Locks // no test calls its Wait

	requesters []redlock.Requester // the clients of the requests; not part of locked
	lock       func(redlock.LockRequest) (redlock.Grant, error)
	unlock     func(redlock.UnlockRequest) (bool, error)
	extend     func(redlock.ExtendRequest) (redlock.Grant, error)

	locked    []redlock.LockRequest
	unlocked  []redlock.UnlockRequest
	extended  []redlock.ExtendRequest
	givenBack []redlock.Token
	waiting   []redlock.LockDone
}

func (f *fakeLocks) Lock(_ *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	if r.Requester != nil {
		f.requesters = append(f.requesters, *r.Requester)
		if r.Requester = nil; f.requesters[len(f.requesters)-1].Meta != "" {
			r.Requester = &redlock.Requester{Meta: f.requesters[len(f.requesters)-1].Meta}
		}
	}
	f.locked = append(f.locked, r)
	if f.lock == nil {
		f.waiting = append(f.waiting, done)
		return
	}
	done(f.lock(r))
}

func (f *fakeLocks) Unlock(_ *redlock.Batch, r redlock.UnlockRequest, done redlock.UnlockDone) {
	f.unlocked = append(f.unlocked, r)
	done(f.unlock(r))
}

func (f *fakeLocks) Extend(_ *redlock.Batch, r redlock.ExtendRequest, done redlock.ExtendDone) {
	f.extended = append(f.extended, r)
	done(f.extend(r))
}

func (f *fakeLocks) GiveBack(g redlock.Grant) { f.givenBack = append(f.givenBack, g.Token) }

// show writes a reply in one line: nil, :1, "bulk", +simple, -error, [array], {map}.
func show(r commands.Reply) string {
	switch r.Kind {
	case commands.KindNil:
		return "nil"
	case commands.KindSimple:
		return "+" + r.Text
	case commands.KindError:
		return "-" + r.Text
	case commands.KindInt:
		return ":" + strconv.FormatInt(r.Int, 10)
	case commands.KindBulk:
		return strconv.Quote(r.Text)
	case commands.KindArray:
		return "[" + showAll(r.Items) + "]"
	case commands.KindMap:
		return "{" + showAll(r.Items) + "}"
	case commands.KindPush:
		return ">" + showAll(r.Items)
	case commands.KindEach:
		return "each(" + showAll(r.Items) + ")"
	}
	return fmt.Sprintf("?%d", r.Kind)
}

func showAll(items []commands.Reply) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = show(item)
	}
	return strings.Join(texts, " ")
}

func splitWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, word), rest
			continue
		}
		prefix, err := strconv.QuotedPrefix(line)
		if err != nil {
			t.Fatalf("bad quotes in %q", line)
		}
		word, _ := strconv.Unquote(prefix)
		words, line = append(words, word), line[len(prefix):]
	}
	return words
}

func TestConversation_ReadsWordsAsTheyAreQuoted(t *testing.T) {
	got := splitWords(t, ` a  "b c" "\x00" `)
	if !slices.Equal(got, []string{"a", "b c", "\x00"}) {
		t.Errorf("got %q", got)
	}
}
