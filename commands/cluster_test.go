package commands_test

// cluster_test.go: the daemons as the nodes of a Redis Cluster.

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/redlock/slots"
)

const ownAddress, otherAddress = "10.0.0.1:7379", "host-2.example:7380"

// division is between two daemons.
func division() slots.Division {
	return slots.Division{Own: ownAddress, Daemons: []string{ownAddress, otherAddress}, Homes: []slots.Home{
		{Range: slots.Range{First: 0, Last: 99}, Daemon: ownAddress},
		{Range: slots.Range{First: 100, Last: 16382}, Daemon: otherAddress},
		{Range: slots.Range{First: 16383, Last: 16383}, Daemon: ownAddress},
	}}
}

func newNode(t *testing.T) *conversation {
	c := newConversation(t)
	c.serve(commands.Deps{Locks: c.locks, Cluster: division})
	return c
}

func TestCLUSTER_ShowsWhereEachSlotIsAtHome(t *testing.T) {
	own, other := fmt.Sprintf("%x", sha1.Sum([]byte(ownAddress))), fmt.Sprintf("%x", sha1.Sum([]byte(otherAddress)))
	newNode(t).transcript(strings.NewReplacer("OWN", own, "OTHER", other).Replace(`
		> CLUSTER SLOTS
		< [[:0 :99 ["10.0.0.1" :7379 "OWN" {}]] [:100 :16382 ["host-2.example" :7380 "OTHER" {}]] [:16383 :16383 ["10.0.0.1" :7379 "OWN" {}]]]
		> CLUSTER SHARDS
		< [{"slots" [:0 :99 :16383 :16383] "nodes" [{"id" "OWN" "port" :7379 "ip" "10.0.0.1" "endpoint" "10.0.0.1" "role" "master" "replication-offset" :0 "health" "online"}]} {"slots" [:100 :16382] "nodes" [{"id" "OTHER" "port" :7380 "ip" "host-2.example" "endpoint" "host-2.example" "role" "master" "replication-offset" :0 "health" "online"}]}]
		> CLUSTER NODES
		< "OWN 10.0.0.1:7379@0 myself,master - 0 0 1 connected 0-99 16383\nOTHER host-2.example:7380@0 master - 0 0 2 connected 100-16382\n"
		> CLUSTER MYID
		< "OWN"
		> CLUSTER MYSHARDID
		< "OWN"
		> CLUSTER KEYSLOT {user1000}.following
		< :3443
		> CLUSTER COUNTKEYSINSLOT 16383
		< :0
		> CLUSTER GETKEYSINSLOT 0 10
		< []
		> CLUSTER LINKS
		< []
		> CLUSTER REPLICAS OTHER
		< []
		> CLUSTER COUNTKEYSINSLOT 16384
		< -ERR Invalid slot
		> CLUSTER REPLICAS another
		< -ERR Unknown node another
		> CLUSTER GETKEYSINSLOT 16384 1
		< -ERR Invalid slot or number of keys
		> CLUSTER GETKEYSINSLOT 1 -1
		< -ERR Invalid slot or number of keys
		> CLUSTER GETKEYSINSLOT 1 x
		< -ERR value is not an integer or out of range
		> CLUSTER FAILOVER
		< -ERR unknown subcommand 'FAILOVER'. Try CLUSTER HELP.
	`))
}

func TestCLUSTER_TheDaemonSaysThatItIsANode(t *testing.T) {
	c := newNode(t)
	for line, want := range map[string]string{
		"HELLO": `"mode" "cluster"`, "INFO server": "redis_mode:cluster", "INFO cluster": `cluster_enabled:1\r\ncluster_daemons:2`,
		"CLUSTER INFO": `cluster_state:ok\r\ncluster_slots_assigned:16384`,
	} {
		if got := c.say(line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
	alone := newConversation(t)
	for line, want := range map[string]string{
		"HELLO": `"mode" "standalone"`, "INFO server": "redis_mode:standalone", "INFO cluster": `cluster_enabled:0\r\n"`,
		"CLUSTER SLOTS": "-ERR This instance has cluster support disabled", "CLUSTER SHARDS": "-ERR This instance has cluster support disabled",
	} {
		if got := alone.say(line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
}
