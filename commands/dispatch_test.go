package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

func TestDispatch_FindsNamesInAnyCase(t *testing.T) {
	newConversation(t).transcript(`
		> ping
		< +PONG
		> PiNg
		< +PONG
		> cLiEnT iD
		< :7
	`)
}

// The text of Redis comes first: libraries match on it.
func TestDispatch_ProposesTheCommandForNamesThatAreTried(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> LOCK invoices 30000
		< -ERR unknown command 'LOCK', with args beginning with: 'invoices' '30000' (did you mean DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]?)
		> drelease invoices
		< -ERR unknown command 'drelease', with args beginning with: 'invoices' (did you mean DUNLOCK key [token [KEEP ms | REENTRANT]]?)
		> KEYS *
		< -ERR unknown command 'KEYS', with args beginning with: '*' (did you mean DLOCKS cursor [MATCH pattern] [COUNT n]?)
		> DLOCK invoices 30s
		< -ERR ttl '30s' is not an integer or out of range, allowed are 10 to 60000 ms; times are milliseconds: 30000, not '30s'; syntax: DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]
		> DLOCK 30000 invoices
		< -ERR ttl 'invoices' is not an integer or out of range, allowed are 10 to 60000 ms; the key stands before the ttl; syntax: DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]
		> DLOCK invoices PX 30000
		< -ERR ttl 'PX' is not an integer or out of range, allowed are 10 to 60000 ms; the time stands without PX, in milliseconds; syntax: DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]
	`)
}

// Many times 0s is a duration.
func TestDispatch_RepeatsNoLongTime(t *testing.T) {
	c := newConversation(t)
	if text := c.start("DLOCK", "invoices", strings.Repeat("0s", 1<<16)+"1s").read(t).Text; len(text) > 1000 {
		t.Errorf("an error of %d bytes", len(text))
	}
}

func TestDispatch_ReportsUnknownCommandsAsRedisDoes(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> FOO bar
		< -ERR unknown command 'FOO', with args beginning with: 'bar' 
		> foo
		< -ERR unknown command 'foo', with args beginning with: 
		> ""
		< -ERR unknown command '', with args beginning with: 
		> "x\x00y" "a\x00b" c
		< -ERR unknown command 'x', with args beginning with: 'a' 'c' 
		> SENTINEL MASTERS
		< -ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS' (redlockd is one address like a single Redis: connect without Sentinel)
		> CLIENT FOO
		< -ERR unknown subcommand 'FOO'. Try CLIENT HELP.
		> config SET a b
		< -ERR unknown subcommand 'SET'. Try CONFIG HELP. Options change in the configuration file or on the command line, and by a restart; users by SIGHUP.
		> COMMAND GETNAMES
		< -ERR unknown subcommand 'GETNAMES'. Try COMMAND HELP.
	`)
	if got := c.words("FOO\r\n-OK", "\t"); got != "-ERR unknown command 'FOO\r\n-OK', with args beginning with: '\t' " {
		t.Errorf("the encoder masks line breaks, not the text: %q", got)
	}
	if got := show(c.start().read(t)); got != "-ERR unknown command '', with args beginning with: " {
		t.Errorf("no words at all: %s", got)
	}
}

// The lengths were read off a redis-server 7.0.15.
func TestDispatch_CutsUnknownCommandsWhereRedisDoes(t *testing.T) {
	c := newConversation(t)
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, of := range []struct {
		args []string
		want string
	}{
		{[]string{x(300), x(300), "y"}, "'" + x(128) + "', with args beginning with: '" + x(128) + "' "},
		{[]string{"foo", "a", x(200), "y"}, "'foo', with args beginning with: 'a' '" + x(124) + "' "},
		{[]string{"foo", x(124), "y", "z"}, "'foo', with args beginning with: '" + x(124) + "' 'y' "},
		{[]string{"foo", x(125), "y"}, "'foo', with args beginning with: '" + x(125) + "' "},
	} {
		if got := c.words(of.args...); got != "-ERR unknown command "+of.want {
			t.Errorf(" got %s\nwant %s", got, of.want)
		}
	}
	if got, want := c.words("CLIENT", x(300)), "-ERR unknown subcommand '"+x(128)+"'. Try CLIENT HELP."; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
}

func TestDispatch_ChecksTheNumberOfWords(t *testing.T) {
	newConversation(t).transcript(`
		> PING x y z
		< -ERR wrong number of arguments for 'ping' command
		> CLIENT
		< -ERR wrong number of arguments for 'client' command
		> CLIENT SETNAME
		< -ERR wrong number of arguments for 'client|setname' command
		> CLIENT ID x
		< -ERR wrong number of arguments for 'client|id' command
		> CONFIG GET
		< -ERR wrong number of arguments for 'config|get' command
		> CLUSTER
		< -ERR wrong number of arguments for 'cluster' command
		> DLOCK
		< -ERR wrong number of arguments for 'dlock' command; syntax: DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]
	`)
}

// What reads a key before it changes it must not be overtaken by what comes
// behind it in a pipeline.
func TestBarrier_HoldsWhatReadsFirst(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	c.extendsAll()
	o.views["k"] = redlock.View{Kind: "string", Value: "token-1", Left: time.Second, Longest: time.Second}
	for line, want := range map[string]bool{
		"DEL k": true, "unlink k": true, "EXPIRE k 0": true, "PEXPIRE k -1": true, "PEXPIRE k 1000": false, "EXPIRE k x": false,
		"DELEX k IFEQ v": false, "SET k v NX PX 1000": false, "GET k": false, "EVAL x": false, "EVALSHA " + shaOf(renews) + " 1 k": true,
	} {
		if got := c.table.Plan(strings.Fields(line)).Barrier; got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
	for text, after := range map[string]bool{renews: false, adds: true} {
		call := []string{"EVAL", text, "1", "k", "token-1", "20000"}
		if !c.table.Plan(call).Barrier {
			t.Errorf("it is unknown, and no barrier: %s", text)
		}
		c.eval(call...)
		bySHA := []string{"evalsha", shaOf(text), "1", "k", "token-1", "20000"}
		if c.table.Plan(call).Barrier != after || c.table.Plan(bySHA).Barrier != after {
			t.Errorf("it was seen, a barrier is %t of: %s", !after, text)
		}
	}
}

func TestDispatch_LooksUpWithoutAllocating(t *testing.T) {
	table := newTable(commands.Deps{})
	for _, args := range [][]string{{"dLOCK", "k", "1000"}, {"CLIENT", "SetInfo", "LIB-NAME", "x"}} {
		if n := testing.AllocsPerRun(100, func() { table.Route(args) }); n != 0 {
			t.Errorf("%q: %v allocations", args, n)
		}
	}
}

func TestBarrier_HoldsWhatChangesTheMeaningOfLaterCommands(t *testing.T) {
	table := newTable(commands.Deps{})
	for line, want := range map[string]bool{
		"SELECT 1": true, "auth x": true, "HELLO": true, "HELLO 3": true, "RESET": true, "QUIT": true,
		"DUNLOCK k": true, "dunlock k": true, "DUNLOCK k 12345678": false, "DUNLOCK": false,
		"DLOCK k 1000": false, "DEXTEND k 12345678 1000": false, "PING": false, "CLIENT ID": false, "NONSENSE": false,
	} {
		if got := table.Plan(strings.Fields(line)).Barrier; got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
	if table.Plan(nil).Barrier {
		t.Error("no words are no barrier")
	}
}

// What is more work for the masters than a command on one key weighs more.
func TestPlan_Weighs(t *testing.T) {
	table := newTable(commands.Deps{})
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprint("key:", i)
	}
	for line, want := range map[string]int{
		"": 1, "PING": 1, "NONSENSE": 1, "DLOCK k 1000 WAIT 5000 TOKEN 12345678 META text HOLD 1000 FAIR": 1,
		"DLOCKS 0": 100, "dlocks 0 MATCH a* COUNT 1000": 100,
		"DMLOCK 1000 64 " + strings.Join(keys, " "): 111,
	} {
		if got := table.Plan(strings.Fields(line)).Weight; got != want {
			t.Errorf("%s: weighs %d, want %d", line, got, want)
		}
	}
}
