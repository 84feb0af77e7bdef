package commands_test

import (
	"path"
	"strconv"
	"testing"
	"time"

	"redlockd/commands"
)

func TestRedisIdentity_IsAMasterWithoutReplicas(t *testing.T) {
	newConversation(t).transcript(`
		> ROLE
		< ["master" :0 []]
		> DBSIZE
		< :0
		> WAIT 1 100
		< :0
		> WAIT x 1
		< -ERR value is not an integer or out of range
		> WAIT 1 x
		< -ERR timeout is not an integer or out of range
		> WAIT 1 -1
		< -ERR timeout is negative
		> READONLY
		< +OK
		> READWRITE
		< +OK
		> CLUSTER SLOTS
		< -ERR This instance has cluster support disabled
		> TIME now
		< -ERR wrong number of arguments for 'time' command
	`)
}

func TestTIME_IsTheWallClockInTwoStrings(t *testing.T) {
	c := newConversation(t)
	before := time.Now().UnixMicro()
	r := c.start("TIME").read(t)
	after := time.Now().UnixMicro()
	if r.Kind != commands.KindArray || len(r.Items) != 2 || r.Items[0].Kind != commands.KindBulk || r.Items[1].Kind != commands.KindBulk {
		t.Fatalf("got %s", show(r))
	}
	seconds, _ := strconv.ParseInt(r.Items[0].Text, 10, 64)
	micros, _ := strconv.ParseInt(r.Items[1].Text, 10, 64)
	if now := seconds*1e6 + micros; now < before || now > after || micros >= 1e6 {
		t.Errorf("%s is not between %d and %d", show(r), before, after)
	}
}

func TestCONFIG_GetShowsEveryMatchingOptionOnce(t *testing.T) {
	c := newConversation(t)
	c.table = newTable(commands.Deps{Config: func(pattern string) (found [][2]string) {
		for _, option := range [][2]string{{"databases", "16"}, {"max-ttl", "60000"}} {
			if ok, _ := path.Match(pattern, option[0]); ok {
				found = append(found, option)
			}
		}
		return found
	}})
	c.transcript(`
		> CONFIG GET databases
		< {"databases" "16"}
		> CONFIG GET max* * databases
		< {"max-ttl" "60000" "databases" "16"}
		> CONFIG GET save
		< {}
		> CONFIG SET databases 3
		< -ERR unknown subcommand 'SET'. Try CONFIG HELP. Options change in the configuration file or on the command line, and by a restart; users by SIGHUP.
	`)
}

func TestCONFIG_GetIsEmptyWithoutOptions(t *testing.T) {
	newConversation(t).transcript(`
		> CONFIG GET *
		< {}
	`)
}
