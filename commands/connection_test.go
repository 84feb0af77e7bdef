package commands_test

import (
	"strings"
	"testing"
)

func TestConnection_PingAndEchoGiveBackWhatTheyGet(t *testing.T) {
	newConversation(t).transcript(`
		> PING
		< +PONG
		> PING "a\x00b\r\n"
		< "a\x00b\r\n"
		> ECHO "\xff\x00"
		< "\xff\x00"
		> ECHO
		< -ERR wrong number of arguments for 'echo' command
	`)
}

func TestConnection_QuitClosesBehindItsReply(t *testing.T) {
	for _, line := range []string{"QUIT", "quit now"} {
		c := newConversation(t)
		if got := c.say(line); got != "+OK" || !c.client.Closing {
			t.Errorf("%s: %s, closing %t", line, got, c.client.Closing)
		}
	}
}

func TestSELECT_AcceptsTheDatabasesThereAre(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> SELECT 15
		< +OK
		> SELECT 16
		< -ERR DB index is out of range
		> SELECT -1
		< -ERR DB index is out of range
		> SELECT x
		< -ERR value is not an integer or out of range
		> SELECT 01
		< -ERR value is not an integer or out of range
		> SELECT 99999999999
		< -ERR value is out of range, value must between -2147483648 and 2147483647
		> SELECT 99999999999999999999
		< -ERR value is not an integer or out of range
	`)
	if c.client.DB != 15 {
		t.Errorf("database %d", c.client.DB)
	}
}

func TestRESET_MakesTheConnectionAsGoodAsNew(t *testing.T) {
	c := newConversation(t)
	c.grants(1e9)
	c.transcript(`
		> HELLO 3 SETNAME worker
		< {"server" "redis" "version" "8.4.0" "proto" :3 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> SELECT 4
		< +OK
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> RESET
		< +RESET
		> CLIENT GETNAME
		< nil
		> SELECT 4
		< +OK
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 4, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> RESET x
		< -ERR wrong number of arguments for 'reset' command
	`)
	if c.client.Proto != 2 {
		t.Errorf("protocol %d", c.client.Proto)
	}
	if c.say("RESET"); c.client.DB != 0 {
		t.Errorf("database %d", c.client.DB)
	}
}

func TestHELLO_SwitchesTheProtocolAndIntroducesTheServer(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> HELLO
		< {"server" "redis" "version" "8.4.0" "proto" :2 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> hello 3 auth default whatever setname worker-1
		< {"server" "redis" "version" "8.4.0" "proto" :3 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> HELLO
		< {"server" "redis" "version" "8.4.0" "proto" :3 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> CLIENT GETNAME
		< "worker-1"
		> HELLO 2
		< {"server" "redis" "version" "8.4.0" "proto" :2 "id" :7 "mode" "standalone" "role" "master" "modules" []}
	`)
	if c.client.Proto != 2 || c.client.Name != "worker-1" {
		t.Errorf("protocol %d, name %q", c.client.Proto, c.client.Name)
	}
}

func TestHELLO_ThatFailsChangesNothing(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> HELLO 4
		< -NOPROTO unsupported protocol version
		> HELLO 0
		< -NOPROTO unsupported protocol version
		> HELLO -3
		< -NOPROTO unsupported protocol version
		> HELLO 99999999999
		< -NOPROTO unsupported protocol version
		> HELLO 99999999999999999999
		< -ERR Protocol version is not an integer or out of range
		> HELLO x
		< -ERR Protocol version is not an integer or out of range
		> HELLO 3 JUNK
		< -ERR Syntax error in HELLO option 'JUNK'
		> HELLO 3 AUTH default
		< -ERR Syntax error in HELLO option 'AUTH'
		> HELLO 3 SETNAME
		< -ERR Syntax error in HELLO option 'SETNAME'
		> HELLO 3 SETNAME "a b"
		< -ERR Client names cannot contain spaces, newlines or special characters.
		> HELLO 3 SETNAME me AUTH somebody secret
		< -WRONGPASS invalid username-password pair or user is disabled.
	`)
	if c.client.Proto != 2 || c.client.Name != "" {
		t.Errorf("protocol %d, name %q", c.client.Proto, c.client.Name)
	}
}

func TestAUTH_RepliesAsAServerWithoutPassword(t *testing.T) {
	newConversation(t).transcript(`
		> AUTH x
		< -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
		> AUTH default x
		< +OK
		> AUTH somebody x
		< -WRONGPASS invalid username-password pair or user is disabled.
		> AUTH a b c
		< -ERR syntax error
		> AUTH
		< -ERR wrong number of arguments for 'auth' command
	`)
}

func TestCLIENT_KeepsWhatLibrariesSendAboutThemselves(t *testing.T) {
	newConversation(t).transcript(`
		> CLIENT GETNAME
		< nil
		> CLIENT SETNAME worker
		< +OK
		> CLIENT GETNAME
		< "worker"
		> client setinfo LIB-NAME go-redis(,go1.26)
		< +OK
		> CLIENT SETINFO lib-ver 9.22.0
		< +OK
		> CLIENT ID
		< :7
		> CLIENT INFO
		< "id=7 addr=10.0.0.9:5555 name=worker db=0 age=0 idle=0 flags=N sub=0 psub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client|info user=default lib-name=go-redis(,go1.26) lib-ver=9.22.0 resp=2\n"
		> CLIENT SETNAME ""
		< +OK
		> CLIENT GETNAME
		< nil
		> CLIENT NO-EVICT on
		< +OK
		> CLIENT NO-TOUCH OFF
		< +OK
	`)
}

func TestCLIENT_RefusesWhatItCannotKeep(t *testing.T) {
	c := newConversation(t)
	c.transcript(`
		> CLIENT SETNAME "a b"
		< -ERR Client names cannot contain spaces, newlines or special characters.
		> CLIENT SETNAME "a\n"
		< -ERR Client names cannot contain spaces, newlines or special characters.
		> CLIENT SETNAME é
		< -ERR Client names cannot contain spaces, newlines or special characters.
		> CLIENT SETINFO LIB-NAME "a b"
		< -ERR lib-name cannot contain spaces, newlines or special characters.
		> CLIENT SETINFO LIB-COLOR red
		< -ERR Unrecognized option 'LIB-COLOR'
		> CLIENT NO-EVICT maybe
		< -ERR syntax error
	`)
	long := strings.Repeat("n", 257)
	if got := c.words("CLIENT", "SETNAME", long); got != "-ERR client name of 257 bytes, allowed are 0 to 256" {
		t.Error(got)
	}
	if got := c.words("CLIENT", "SETINFO", "LIB-VER", long); got != "-ERR lib-ver of 257 bytes, allowed are 0 to 256" {
		t.Error(got)
	}
}

// A client that receives OK relies on it: fail-over notices.
func TestCLIENT_PromisesNothingThatIsNotServed(t *testing.T) {
	newConversation(t).transcript(`
		> CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-fqdn
		< -ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.
	`)
}
