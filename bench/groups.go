// Several groups of masters with as many daemons, as when a service grows. One machine is too small
// for the load of all, and what a pair costs depends on how full the lanes are. So one of the
// daemons has the load that a daemon has beside one group, and the cost is that of this daemon and of
// the masters that it uses; the others are there and idle. Clients with the slot map use the
// daemon for the keys at home there, which belong to one group; those without it for all keys.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"redlockd/redlock/slots"
)

const (
	mastersOfGroup = 3
	callersOfGroup = 64
)

func groupsName(groups int, home bool) string {
	clients := "keys of all groups"
	if home {
		clients = "keys at home"
	}
	return fmt.Sprintf("%d groups and daemons, %s, %d callers", groups, clients, callersOfGroup)
}

var oneGroupName = fmt.Sprintf("1 group and daemon, %s", callers(callersOfGroup))

func groupScenarios() []scenario {
	run := func(groups int, home bool) runner {
		return onOwnTestbed(testbedOptions{masters: mastersOfGroup, groups: groups}, groupPairs(home))
	}
	all := []scenario{{name: oneGroupName, page: pageGroups, peer: oneGroupName, run: run(1, true)}}
	for _, groups := range []int{2, 4} {
		for _, home := range []bool{true, false} {
			all = append(all, scenario{name: groupsName(groups, home), page: pageGroups, peer: oneGroupName, run: run(groups, home)})
		}
	}
	return all
}

func groupPairs(home bool) runner {
	return func(ctx context.Context, tb *testbed, span time.Duration) (figures, error) {
		used := *tb // without the masters that the daemon's clients do not use
		open := func(context.Context, *testbed, int) (workerSet, error) {
			c := workerSet{daemons: []*daemon{tb.daemon}, close: func() {}}
			if err := c.openGroups(ctx, tb, &used, home); err != nil {
				return workerSet{}, errors.Join(err, c.closeNow())
			}
			return c, nil
		}
		return pairs(callersOfGroup, open)(ctx, &used, span)
	}
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

// openGroups starts the other daemons of the run, and gives the first one its callers.
func (ws *workerSet) openGroups(ctx context.Context, tb, used *testbed, home bool) error {
	for i := 1; i < tb.groups; i++ {
		d, err := tb.startDaemon("further", "--cluster-announce", announced(i))
		if err != nil {
			return err
		}
		ws.addCloser(d.process.terminate)
		if err := tb.allVote(ctx, d); err != nil {
			return err
		}
	}
	if err := tb.allVote(ctx, tb.daemon); err != nil {
		return err
	}
	homes, err := slotMap(ctx, tb.daemon, tb.groups)
	if err != nil {
		return err
	}
	o := tuned()
	o.InitAddress, o.ForceSingleClient = []string{tb.daemon.address}, true
	client, err := rueidis.NewClient(o)
	if err != nil {
		return err
	}
	ws.addCloser(client.Close)
	next, loaded := 0, map[int]bool{} // groups
	for range callersOfGroup {
		w := &multiplexedWorker{client: client, ttl: leaseMillis}
		for ; len(w.keys) < keysPerWorker; next++ {
			key := fmt.Sprint("bench:group:", next)
			if slot := slots.Of(key); !home || homes[slot] == 0 {
				w.keys = append(w.keys, key)
				loaded[slot*tb.groups/slots.Count] = true
			}
		}
		ws.workers = append(ws.workers, w)
	}
	used.masters = nil
	for group := range loaded {
		used.masters = append(used.masters, tb.masters[group*mastersOfGroup:(group+1)*mastersOfGroup]...)
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
