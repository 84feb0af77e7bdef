package daemon

// cluster_test.go: daemons as the nodes of a Redis Cluster, beside a node of a real one.

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool/faulty"
	"redlockd/proxy/resp"
	"redlockd/redlock/slots"
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

// slotMap is the daemon of each slot; nil if the map is not one of so many daemons.
func slotMap(t *testing.T, address string, daemons int) (of []string) {
	t.Helper()
	known := map[string]bool{}
	for _, r := range asks(t, address, "CLUSTER SLOTS")[0].Items {
		if int(r.Items[0].Int) != len(of) {
			t.Fatalf("the range from slot %d follows slot %d", r.Items[0].Int, len(of)-1)
		}
		home := net.JoinHostPort(r.Items[2].Items[0].Text, fmt.Sprint(r.Items[2].Items[1].Int))
		known[home] = true
		for slot := r.Items[0].Int; slot <= r.Items[1].Int; slot++ {
			of = append(of, home)
		}
	}
	if len(of) != slots.Count {
		t.Fatalf("the map has %d slots", len(of))
	}
	if len(known) != daemons {
		return nil
	}
	return of
}

// A client in cluster mode sends each key of two groups to the daemon that is at home there, and
// goes on with the other daemon when that one has died.
func TestCluster_ClientsFindTheHomesOfTwoGroups(t *testing.T) {
	t.Parallel()
	path := mapFile(t, twoGroups(t), slots.Count/2-1)
	bootstrapFile(t, path)
	var processes [2]*exec.Cmd
	var daemons [2]string
	for i := range daemons {
		daemons[i] = faulty.FreeAddr(t) // known before it starts
		processes[i], _ = startProcess(t, "--config", path, "--listen", daemons[i], "--cluster-announce", daemons[i])
	}
	var homes []string
	eventually(t, "both daemons show one map of both", func() bool {
		homes = slotMap(t, daemons[0], 2)
		return homes != nil && slices.Equal(homes, slotMap(t, daemons[1], 2))
	}, func() string { return fmt.Sprint(asks(t, daemons[0], "CLUSTER SLOTS")) })
	for slot, home := range homes { // each group of masters gets its requests from one daemon
		if other := slot < slots.Count/2; (home == homes[0]) != other {
			t.Fatalf("slot %d is at home at %s, slot 0 at %s", slot, home, homes[0])
		}
	}
	for _, address := range daemons {
		var shards []int64
		for _, shard := range asks(t, address, "CLUSTER SHARDS")[0].Items {
			for _, slot := range shard.Items[1].Items {
				shards = append(shards, slot.Int)
			}
		}
		slices.Sort(shards)
		if !slices.Equal(shards, []int64{0, slots.Count/2 - 1, slots.Count / 2, slots.Count - 1}) {
			t.Errorf("CLUSTER SHARDS of %s: slots %d", address, shards)
		}
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: daemons[:1], DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if mode := client.Mode(); mode != rueidis.ClientModeCluster {
		t.Fatalf("the client's mode is %v", mode)
	}
	lock := func(key string) error {
		grant, err := client.Do(ctx, client.B().Arbitrary("DLOCK").Keys(key).Args("5000").Build()).ToArray()
		if err != nil {
			return fmt.Errorf("DLOCK %s: %w", key, err)
		}
		token, _ := grant[0].ToString()
		return client.Do(ctx, client.B().Arbitrary("DUNLOCK").Keys(key).Args(token).Build()).Error()
	}
	want := map[string]int{}
	for n := range 10 {
		for group := range 2 {
			key := keyOf(group, n)
			if err := lock(key); err != nil {
				t.Fatal(err)
			}
			want[homes[slots.Of(key)]]++
		}
	}
	for _, address := range daemons {
		if got := dial(t, address).info(t, "locks")["locks_acquired"]; got != fmt.Sprint(want[address]) || want[address] == 0 {
			t.Errorf("%s granted %s locks, %d were of slots at home there", address, got, want[address])
		}
	}
	both := client.B().Arbitrary("DMLOCK").Args("5000", "2", keyOf(0, 0), keyOf(1, 0)).Build()
	if grant, err := client.Do(ctx, both).ToArray(); err != nil || len(grant) != 3 {
		t.Errorf("DMLOCK of keys of both groups: %v, %v", grant, err)
	}
	if err := processes[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon that was killed has no slots of either group", func() bool { return slotMap(t, daemons[0], 1) != nil },
		func() string { return fmt.Sprint(asks(t, daemons[0], "CLUSTER SLOTS")) })
	for group := range 2 {
		key := keyOf(group, 1)
		eventually(t, "the client goes on with the other daemon", func() bool { err = lock(key); return err == nil }, func() string { return fmt.Sprint(err) })
	}
}
