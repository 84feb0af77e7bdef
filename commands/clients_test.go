package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
)

// fakeConnections are other clients.
type fakeConnections struct {
	list []commands.Description
	cut  []int64
	they map[int64]*commands.Client
}

func (f *fakeConnections) Client(id int64) *commands.Client { return f.they[id] }

func (f *fakeConnections) Describe() []commands.Description { return f.list }
func (f *fakeConnections) Cut(id int64) bool                { f.cut = append(f.cut, id); return id != 99 }

// crowd is a conversation of client 7 among others.
func crowd(t *testing.T, list ...access.User) (*conversation, *fakeConnections) {
	c, users := guarded(t, list...)
	others := &fakeConnections{list: []commands.Description{
		{ID: 7, Addr: "10.0.0.9:5555", User: "stale", Proto: 2},
		{ID: 8, Addr: "10.0.0.9:5556", User: "low", Proto: 3, Name: "worker"},
		{ID: 9, Addr: "10.0.0.8:1", User: "default", Proto: 2, Channels: 1, Patterns: 2},
		{ID: 99, Addr: "10.0.0.8:2", User: "default", Proto: 2}, // has gone meanwhile
	}}
	c.serve(commands.Deps{Locks: c.locks, Users: users, Connections: others})
	return c, others
}

func TestCLIENTLIST_ShowsTheOwnUserAndAllToAdmins(t *testing.T) {
	c, _ := crowd(t, low(), access.Everything("default", "pw"))
	line := func(head, sub, cmd, user string) string {
		return head + " db=0 age=0 idle=0 flags=N " + sub + " " + unmeasured + " cmd=" + cmd + " user=" + user + " lib-name= lib-ver="
	}
	me := func(user string) string {
		return line("id=7 addr=10.0.0.9:5555 name=", "sub=0 psub=0", "client|list", user) + ` resp=2 locks=0\n`
	}
	worker := line("id=8 addr=10.0.0.9:5556 name=worker", "sub=0 psub=0", "", "low") + ` resp=3 locks=2\n`
	listener := line("id=9 addr=10.0.0.8:1 name=", "sub=1 psub=2", "", "default") + ` resp=2 locks=0\n`
	c.transcript(strings.NewReplacer("ME-LOW", me("low"), "ME", me("default"), "WORKER", worker, "LISTENER", listener).Replace(`
		> AUTH low new
		< +OK
		> CLIENT LIST
		< "ME-LOWWORKER"
		> CLIENT LIST ID 9 8
		< "WORKER"
		> CLIENT LIST TYPE normal
		< -ERR syntax error
		> CLIENT LIST ID x
		< -ERR Invalid client ID
		> AUTH pw
		< +OK
		> CLIENT LIST ID 7 8 9
		< "MEWORKERLISTENER"
	`))
}

func TestCLIENTKILL_AnswersAsRedisDoes(t *testing.T) {
	c, others := crowd(t, access.Everything("default", "pw"))
	c.transcript(`
		> AUTH pw
		< +OK
		> CLIENT KILL 1.2.3.4:5
		< -ERR No such client
		> CLIENT KILL 10.0.0.9:5556
		< +OK
		> CLIENT KILL ID 9
		< :1
		> CLIENT KILL ID 12345
		< :0
		> CLIENT KILL ID 99
		< :0
		> CLIENT KILL USER low
		< :1
		> CLIENT KILL ADDR 10.0.0.9:5555
		< :0
		> CLIENT KILL ID 0
		< -ERR client-id should be greater than 0
		> CLIENT KILL ID
		< -ERR the filter ID has no value: CLIENT KILL ID value
		> CLIENT KILL user
		< -ERR the filter USER has no value: CLIENT KILL USER value
		> CLIENT KILL FOO bar
		< -ERR syntax error
		> CLIENT KILL ID 1 ADDR
		< -ERR syntax error
		> CLIENT KILL
		< -ERR wrong number of arguments for 'client|kill' command
	`)
	if len(others.cut) != 4 || c.client.Closing {
		t.Errorf("cut %d, closing %t", others.cut, c.client.Closing)
	}
	c.transcript(`
		> CLIENT KILL ADDR 10.0.0.9:5555 SKIPME no
		< :1
	`)
	if !c.client.Closing {
		t.Error("the own connection is not closed behind the reply")
	}
}

func TestCLIENTREPLY_AnswersOnlyToON(t *testing.T) {
	c := newConversation(t)
	for _, step := range []struct {
		line, want string
		hearing    commands.ReplyMode
	}{
		{"CLIENT REPLY SKIP", "each()", commands.ReplySkip},
		{"CLIENT REPLY OFF", "each()", commands.ReplyOff},
		{"CLIENT REPLY SKIP", "each()", commands.ReplyOff},
		{"CLIENT REPLY maybe", "-ERR syntax error", commands.ReplyOff},
		{"CLIENT REPLY ON", "+OK", commands.ReplyOn},
		{"CLIENT REPLY OFF", "each()", commands.ReplyOff},
		{"RESET", "+RESET", commands.ReplyOn},
	} {
		if got := c.say(step.line); got != step.want || c.client.ReplyMode != step.hearing {
			t.Errorf("%s: %s, hearing %d", step.line, got, c.client.ReplyMode)
		}
	}
}

func TestSUBSCRIBE_ConfirmsAndRestrictsAsRedisDoes(t *testing.T) {
	const only = ": only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	c := newConversation(t)
	c.transcript(strings.ReplaceAll(`
		> SUBSCRIBE a b
		< each(>"subscribe" "a" :1 >"subscribe" "b" :2)
		> PSUBSCRIBE d*
		< each(>"psubscribe" "d*" :3)
		> DLOCK x 1000
		< -ERR Can't execute 'dlock' ONLY
		> CLIENT ID
		< -ERR Can't execute 'client|id' ONLY
		> HELLO 3
		< -ERR Can't execute 'hello' ONLY
		> FOO
		< -ERR unknown command 'FOO', with args beginning with: 
		> PING
		< ["pong" ""]
		> PING hi
		< ["pong" "hi"]
		> UNSUBSCRIBE zz
		< each(>"unsubscribe" "zz" :3)
		> UNSUBSCRIBE
		< each(>"unsubscribe" "a" :2 >"unsubscribe" "b" :1)
		> punsubscribe
		< each(>"punsubscribe" "d*" :0)
		> UNSUBSCRIBE
		< >"unsubscribe" nil :0
		> SUBSCRIBE d d
		< each(>"subscribe" "d" :1 >"subscribe" "d" :1)
		> UNSUBSCRIBE d d
		< each(>"unsubscribe" "d" :0 >"unsubscribe" "d" :0)
		> SUBSCRIBE
		< -ERR wrong number of arguments for 'subscribe' command
		> PUBLISH a b
		< :0
		> SUBSCRIBE a
		< each(>"subscribe" "a" :1)
		> RESET
		< +RESET
		> PING
		< +PONG
		> HELLO 3
		< {"server" "redis" "version" "8.4.0" "proto" :3 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> SUBSCRIBE c
		< each(>"subscribe" "c" :1)
		> PING
		< +PONG
		> CLIENT ID
		< :7
	`, " ONLY", only))
}

func TestSUBSCRIBE_IsBounded(t *testing.T) {
	c := newConversation(t)
	if got := c.words("SUBSCRIBE", strings.Repeat("c", 1025)); got != "-ERR channel of 1025 bytes, allowed are 0 to 1024" {
		t.Error(got)
	}
	words := make([]string, 1026)
	words[0] = "SUBSCRIBE"
	if got := c.words(words...); got != "-ERR 1025 subscriptions on one connection, allowed are 1024 (--max-subscriptions)" {
		t.Error(got)
	}
	if c.client.Subscribed() {
		t.Error("a refused SUBSCRIBE subscribes")
	}
	words = append(words[:1], make([]string, 64)...)
	for i := range 64 {
		words[i+1] = fmt.Sprintf("%01024d", i)
	}
	c.words(words...)
	c.words(words...) // again is not more
	if n, bytes := c.client.Subscriptions(), c.client.Channels.Bytes; n != 64 || bytes != 1024*64 {
		t.Errorf("%d subscriptions with names of %d bytes", n, bytes)
	}
	if got := c.words("PSUBSCRIBE", "x"); got != "-ERR names of 65537 bytes in the subscriptions of one connection, allowed are 65536 (64 for each of --max-subscriptions)" {
		t.Error(got)
	}
	c.words("UNSUBSCRIBE", words[64])
	if got := c.words("PSUBSCRIBE", "x"); got != `each(>"psubscribe" "x" :64)` {
		t.Error(got)
	}
	c.words("UNSUBSCRIBE")
	c.words("PUNSUBSCRIBE")
	if n := c.client.SubscribedBytes(); n != 0 {
		t.Errorf("%d bytes are left of no subscription", n)
	}
}

func TestSUBSCRIBE_BoundsChannelsAndPatternsTogether(t *testing.T) {
	c := newConversation(t)
	c.serve(commands.Deps{MaxSubscriptions: 3})
	c.say("SUBSCRIBE a b")
	c.say("PSUBSCRIBE c*")
	for _, line := range []string{"SUBSCRIBE d", "PSUBSCRIBE d"} {
		if got := c.say(line); got != "-ERR 4 subscriptions on one connection, allowed are 3 (--max-subscriptions)" {
			t.Errorf("%s: %s", line, got)
		}
	}
}
