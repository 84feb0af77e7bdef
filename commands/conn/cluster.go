// CLUSTER describes the daemons as the nodes of a Redis Cluster, for clients that send each command
// to the node of its key. Every daemon serves every key, so a client that sends it elsewhere gets
// the same answer. Nothing moves by these commands, and there are no replicas.

package conn

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock/slots"
)

// errNoCluster has the words by which rueidis recognises a server that is not a cluster; any
// other text ends its connection.
var errNoCluster = commands.RedisText("This instance has cluster support disabled")

func (n clusterNode) row() *commands.Command {
	part := func(name string, arity commands.Arity, summary string, handle commands.Handler, args ...arg.Spec) *commands.Command {
		return commands.Connection(name, arity, summary, func(c *commands.Call) error {
			if n == nil {
				return errNoCluster
			}
			return handle(c)
		}, args...)
	}
	own := func(c *commands.Call) error { return c.Reply(commands.Bulk(nodeID(n().Own))) }
	none := func(c *commands.Call) error { return c.Reply(commands.Array()) }
	slot, node := arg.Integer("slot"), arg.Text("node-id")
	row := commands.Connection("cluster", commands.AtLeast(2), "Shows the daemons as a Redis Cluster (--cluster-announce).", nil)
	row.Parts = []*commands.Command{
		part("countkeysinslot", commands.Exactly(3), "Always 0: the daemon keeps no keys.", ofSlot(commands.Int(0), "Invalid slot"), slot),
		part("getkeysinslot", commands.Exactly(4), "Always empty: the daemon keeps no keys.", ofSlot(commands.Array(), "Invalid slot or number of keys"), slot, arg.Integer("count")),
		part("info", commands.Exactly(2), "The state of the cluster, which is always ok.", n.info),
		part("keyslot", commands.Exactly(3), "The slot of a name.", func(c *commands.Call) error { return c.Reply(commands.Int(int64(slots.Of(c.Args[2])))) }, arg.Text("key")),
		part("links", commands.Exactly(2), "Always empty: daemons are not connected with one another.", none),
		part("myid", commands.Exactly(2), "The id of this daemon, which follows from its address.", own),
		part("myshardid", commands.Exactly(2), "The id of this daemon.", own),
		part("nodes", commands.Exactly(2), "The daemons, with the slots in which each is at home.", n.nodes),
		part("replicas", commands.Exactly(3), "Always empty: there are no replicas.", n.replicas, node),
		part("shards", commands.Exactly(2), "The daemons, with the slots in which each is at home.", n.shards),
		part("slaves", commands.Exactly(3), "Always empty: there are no replicas.", n.replicas, node),
		part("slots", commands.Exactly(2), "Ranges of slots, each with the daemon that is at home there.", n.slots),
	}
	return row
}

// nodeID is 40 hex digits, the same in all daemons and after a restart.
func nodeID(address string) string {
	id := sha1.Sum([]byte(address))
	return hex.EncodeToString(id[:])
}

// endpoint is the host and port of an address, which has been checked.
func endpoint(address string) (host string, port int64) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.ParseInt(text, 10, 64)
	return host, port
}

// ofSlot checks the slot, and the number behind it if there is one.
func ofSlot(reply commands.Reply, invalid commands.RedisText) commands.Handler {
	return func(c *commands.Call) error {
		var last int64
		for _, word := range c.Args[2:] {
			n, ok := arg.ParseInteger(word)
			if !ok {
				return commands.RedisText("value is not an integer or out of range")
			}
			last = n
		}
		if slot, _ := arg.ParseInteger(c.Args[2]); slot < 0 || slot >= slots.Count || last < 0 {
			return invalid
		}
		return c.Reply(reply)
	}
}

func (n clusterNode) replicas(c *commands.Call) error {
	if !slices.ContainsFunc(n().Daemons, func(daemon string) bool { return nodeID(daemon) == c.Args[2] }) {
		return commands.RedisText("Unknown node " + c.Args[2])
	}
	return c.Reply(commands.Array())
}

func (n clusterNode) slots(c *commands.Call) error {
	homes := n().Homes
	items := make([]commands.Reply, len(homes))
	for i, home := range homes {
		host, port := endpoint(home.Daemon)
		items[i] = commands.Array(commands.Int(int64(home.First)), commands.Int(int64(home.Last)),
			commands.Array(commands.Bulk(host), commands.Int(port), commands.Bulk(nodeID(home.Daemon)), commands.Map()))
	}
	return c.Reply(commands.Array(items...))
}

func (n clusterNode) shards(c *commands.Call) error {
	d := n()
	items := make([]commands.Reply, len(d.Daemons))
	for i, daemon := range d.Daemons {
		host, port := endpoint(daemon)
		var bounds []commands.Reply
		for _, home := range d.Homes {
			if home.Daemon == daemon {
				bounds = append(bounds, commands.Int(int64(home.First)), commands.Int(int64(home.Last)))
			}
		}
		items[i] = commands.Map(commands.Bulk("slots"), commands.Array(bounds...), commands.Bulk("nodes"), commands.Array(commands.Map(
			commands.Bulk("id"), commands.Bulk(nodeID(daemon)),
			commands.Bulk("port"), commands.Int(port),
			commands.Bulk("ip"), commands.Bulk(host),
			commands.Bulk("endpoint"), commands.Bulk(host),
			commands.Bulk("role"), commands.Bulk("master"),
			commands.Bulk("replication-offset"), commands.Int(0),
			commands.Bulk("health"), commands.Bulk("online"))))
	}
	return c.Reply(commands.Array(items...))
}

// nodes has a line for each daemon. Epochs are the places in the list, and there is no bus.
func (n clusterNode) nodes(c *commands.Call) error {
	d := n()
	var text strings.Builder
	for i, daemon := range d.Daemons {
		host, port := endpoint(daemon)
		flags := "master"
		if daemon == d.Own {
			flags = "myself,master"
		}
		fmt.Fprintf(&text, "%s %s:%d@0 %s - 0 0 %d connected", nodeID(daemon), host, port, flags, i+1)
		for _, home := range d.Homes {
			if home.Daemon == daemon {
				text.WriteString(" " + home.Range.String())
			}
		}
		text.WriteString("\n")
	}
	return c.Reply(commands.Bulk(text.String()))
}

func (n clusterNode) info(c *commands.Call) error {
	d := n()
	page := infoPage{}
	page.line("cluster_state", "ok")
	page.line("cluster_slots_assigned", slots.Count)
	page.line("cluster_slots_ok", slots.Count)
	page.line("cluster_slots_pfail", 0)
	page.line("cluster_slots_fail", 0)
	page.line("cluster_known_nodes", len(d.Daemons))
	page.line("cluster_size", len(d.Daemons))
	page.line("cluster_current_epoch", len(d.Daemons))
	page.line("cluster_my_epoch", 1+slices.Index(d.Daemons, d.Own))
	page.line("cluster_stats_messages_sent", 0)
	page.line("cluster_stats_messages_received", 0)
	page.line("total_cluster_links_buffer_limit_exceeded", 0)
	return c.Reply(commands.Bulk(page.text.String()))
}
