// Several groups of masters with as many daemons, as when a service grows: every group brings
// callers and a daemon. Clients with the slot map send each key to its home daemon, as the
// client libraries do in cluster mode; those without it use one daemon for all their keys. So
// does every client of one daemon and one group, which is the peer.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/rueidis"

	"redlockd/redlock/slots"
)

const (
	mastersOfGroup = 3
	callersOfGroup = 64
)

func groupsName(groups int, home bool) string {
	clients := "clients without the slot map"
	if home {
		clients = "home daemons"
	}
	return fmt.Sprintf("%d groups and daemons, %s, %d × %d callers", groups, clients, groups, callersOfGroup)
}

var oneGroupName = fmt.Sprintf("1 group and daemon, %s", callers(callersOfGroup))

func groupScenarios() []scenario {
	run := func(groups int, home bool) runner {
		o := testbedOptions{masters: mastersOfGroup, groups: groups}
		return onOwnTestbed(o, pairs(groups*callersOfGroup, openGroups(home)))
	}
	all := []scenario{{name: oneGroupName, page: pageGroups, peer: oneGroupName, run: run(1, true)}}
	for _, groups := range []int{2, 4} {
		for _, home := range []bool{true, false} {
			all = append(all, scenario{name: groupsName(groups, home), page: pageGroups, peer: oneGroupName, run: run(groups, home)})
		}
	}
	return all
}

// rangeOf is the slots of one of several groups.
func rangeOf(group, groups int) slots.Range {
	return slots.Range{First: group * slots.Count / groups, Last: (group+1)*slots.Count/groups - 1}
}

// writeMap writes the file with the groups of the testbed, and returns the option that names it.
func (tb *testbed) writeMap(groups int) ([]string, error) {
	var text strings.Builder
	n := len(tb.masters) / groups
	for i := range groups {
		fmt.Fprintf(&text, "[[group]]\nname = \"g%d\"\nslots = %q\nmasters = %q\n", i+1, rangeOf(i, groups), strings.Join(tb.addresses()[i*n:(i+1)*n], ","))
	}
	path := filepath.Join(tb.dir, "redlockd.toml")
	return []string{"--config", path, "--cluster-announce", announced(0)}, os.WriteFile(path, []byte(text.String()), 0o600)
}

// announced is the address in the slot map of a daemon. It is a name, because the port on which a
// daemon will listen is not known when it starts.
func announced(daemon int) string { return fmt.Sprintf("daemon-%d:7379", daemon) }

// openGroups starts the other daemons of the run.
func openGroups(home bool) opener {
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
		c := workerSet{daemons: []*daemon{tb.daemon}, close: func() {}}
		if err := c.openGroups(ctx, tb, n, home); err != nil {
			c.close()
			return workerSet{}, err
		}
		return c, nil
	}
}

func (c *workerSet) openGroups(ctx context.Context, tb *testbed, n int, home bool) error {
	for i := 1; i < tb.groups; i++ {
		d, err := tb.startDaemon("further", "--cluster-announce", announced(i))
		if err != nil {
			return err
		}
		c.addCloser(d.process.terminate)
		c.daemons = append(c.daemons, d)
	}
	var clients []rueidis.Client
	for _, d := range c.daemons {
		if err := tb.allVote(ctx, d); err != nil {
			return err
		}
		o := tuned()
		o.InitAddress = []string{d.address}
		client, err := rueidis.NewClient(o)
		if err != nil {
			return err
		}
		c.addCloser(client.Close)
		clients = append(clients, client)
	}
	homes, err := slotMap(ctx, tb.daemon, tb.groups)
	if err != nil {
		return err
	}
	for i := range n {
		w := &routedWorker{}
		byDaemon := make([][]string, len(clients))
		for _, key := range workerKeys("group", i) {
			to := i % len(clients)
			if home {
				to = homes[slots.Of(key)]
			}
			byDaemon[to] = append(byDaemon[to], key)
		}
		for to, keys := range byDaemon {
			if keys != nil {
				w.routes = append(w.routes, &multiplexedWorker{client: clients[to], ttl: leaseMillis, keys: keys})
			}
		}
		c.workers = append(c.workers, w)
	}
	return nil
}

// allVote waits until the daemon grants locks of every group.
func (tb *testbed) allVote(ctx context.Context, d *daemon) error {
	for group := range tb.groups {
		for i := 0; ; i++ {
			key, r := fmt.Sprint("bench:ready:", i), rangeOf(group, tb.groups)
			if slot := slots.Of(key); slot < r.First || slot > r.Last {
				continue
			}
			if err := d.grants(ctx, key); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// slotMap is the number of the home daemon of each slot, once the daemon knows all others.
func slotMap(ctx context.Context, d *daemon, daemons int) (homes [slots.Count]int, err error) {
	c, err := dialRESP(ctx, d.address)
	if err != nil {
		return homes, err
	}
	defer c.close()
	err = d.process.waitFor("the slot map of all daemons", func() bool {
		known := map[int]bool{}
		reply, err := c.do("CLUSTER", "SLOTS")
		for _, r := range reply.Items {
			var number int
			fmt.Sscanf(r.Items[2].Items[0].Text, "daemon-%d", &number)
			known[number] = true
			for slot := r.Items[0].Int; slot <= r.Items[1].Int; slot++ {
				homes[slot] = number
			}
		}
		return err != nil || len(known) == daemons || ctx.Err() != nil
	})
	return homes, err
}

// routedWorker is a caller that takes its keys from each route in turn.
type routedWorker struct {
	routes []*multiplexedWorker
	next   int
}

func (w *routedWorker) turn(n *recorder) error {
	route := w.routes[w.next%len(w.routes)]
	w.next++
	return route.turn(n)
}
