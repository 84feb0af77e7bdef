package daemon

// cluster_test.go: daemons as the nodes of a Redis Cluster, beside a node of a real one.

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/proxy/resp"
)

// asks sends commands on a connection of its own and returns the replies.
func asks(t *testing.T, address string, commands ...string) (replies []resp.Value) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testTimeout))
	in := resp.NewReader(conn)
	for _, command := range commands {
		if _, err := conn.Write(resp.AppendCommand(nil, strings.Fields(command)...)); err != nil {
			t.Fatal(err)
		}
		reply, err := in.ReadValue()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		replies = append(replies, reply)
	}
	return replies
}

// variable is what differs between two nodes of one shape: ids, addresses, figures, hosts.
var variable = regexp.MustCompile(`[0-9a-f]{40}|[0-9.]*:\d+@\d+|\b\d+( \d+-\d+)?\b`)

// shape is a reply with its types, without what differs between two nodes.
func shape(v resp.Value) string {
	switch v.Kind {
	case '*', '%':
		items := make([]string, len(v.Items))
		for i := range v.Items {
			items[i] = shape(v.Items[i])
		}
		return string(v.Kind) + "[" + strings.Join(items, " ") + "]"
	case ':':
		return ":"
	}
	if strings.Trim(v.Text, "0123456789.") == "" { // a host, which the real node does not know
		return string(v.Kind) + "host"
	}
	return string(v.Kind) + variable.ReplaceAllString(v.Text, "#")
}

func TestCluster_RepliesHaveTheShapesOfARealNode(t *testing.T) {
	t.Parallel()
	node := faulty.Start(t, "--cluster-enabled", "yes")
	if _, err := node.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node has its slots", func() bool {
		text, err := node.Do("CLUSTER", "INFO")
		return err == nil && strings.HasPrefix(text.(string), "cluster_state:ok")
	}, func() string { return "" })
	address := serveHere(t, nil, "--embedded", "3", "--cluster-announce", "127.0.0.1:7379")
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		commands := []string{
			hello, "CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER MYID", "CLUSTER LINKS", "CLUSTER KEYSLOT {a}b", "CLUSTER COUNTKEYSINSLOT 7",
			"CLUSTER GETKEYSINSLOT 7 1", "READONLY", "READWRITE", "CLUSTER KEYSLOT", "CLUSTER COUNTKEYSINSLOT 16384", "CLUSTER COUNTKEYSINSLOT x", "CLUSTER NOPE",
		}
		if hello == "HELLO 2" { // in RESP3 Redis marks these texts as such
			commands = append(commands, "CLUSTER NODES", "CLUSTER INFO")
		}
		theirs := asks(t, node.Addr(), commands...)
		for i, ours := range asks(t, address, commands...)[1:] {
			if got, want := shape(ours), shape(theirs[i+1]); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", hello, commands[i+1], got, want)
			}
		}
	}
	keyslots := []string{"CLUSTER KEYSLOT a", "CLUSTER KEYSLOT {b}a", "CLUSTER KEYSLOT {}a", "CLUSTER KEYSLOT a{bc"}
	if got, want := fmt.Sprint(asks(t, address, keyslots...)), fmt.Sprint(asks(t, node.Addr(), keyslots...)); got != want {
		t.Errorf("slots %s, want %s", got, want)
	}
}

// A daemon that ends without a word loses its slots.
func TestCluster_DaemonsShareTheSlots(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	nodes := func(address string) int {
		return strings.Count(asks(t, address, "CLUSTER NODES")[0].Text, "\n")
	}
	announce := func(address string) []string {
		return []string{"--masters", strings.Join(addresses(servers), ","), "--cluster-announce", address}
	}
	_, one := startProcess(t, announce("10.0.0.1:7379")...)
	two, address := startProcess(t, announce("10.0.0.2:7379")...)
	for _, daemon := range []string{one, address} {
		eventually(t, "both daemons are known", func() bool { return nodes(daemon) == 2 }, func() string { return daemon })
	}
	var maps [2]string
	eventually(t, "both show one map", func() bool {
		maps[0], maps[1] = fmt.Sprint(asks(t, one, "CLUSTER SLOTS")), fmt.Sprint(asks(t, address, "CLUSTER SLOTS"))
		return maps[0] == maps[1]
	}, func() string { return strings.Join(maps[:], "\n") })
	if err := two.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon that was killed has no slots", func() bool { return nodes(one) == 1 }, func() string { return "" })
}
