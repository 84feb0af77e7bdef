// What redlockd slots reads from the daemons: how many operations each range of slots has.

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const slotsUsage = `redlockd slots [OPTION…]: shows which group of masters has which slots, and the operations a second
redlockd slots move RANGES --to GROUP [OPTION…]: gives slots to another group while the daemons serve

`

const slotsNotes = `
RANGES are such as 0-1000 or 0-99,200. The groups are those of the file of the daemons: --config FILE.
Nothing is granted in slots that move for the longest lease. The same command goes on where one ended.
It takes the options of the daemon, too. LOCK_USER and LOCK_PASSWORD authenticate to the daemons that
--connect lists, LOCK_CONNECT is --connect.
`

// slotsOptions returns the options of the subcommand alone.
func slotsOptions() []flagRow {
	return append([]flagRow{{"to", "GROUP", "the group that is to have the slots"}}, optionsOf(slotsFlags(&connection{}))...)
}

func slotsHelp() string { return slotsUsage + helpRows(slotsOptions()) + slotsNotes }

const slotsTimeout = 5 * time.Second

// slotsFlags are the options about the daemons. The others are those of the daemon.
func slotsFlags(c *connection) *pflag.FlagSet {
	flags := c.flags("slots")
	own := pflag.NewFlagSet("slots", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "db" {
			own.AddFlag(f)
		}
	})
	own.Lookup("connect").Usage = "LIST\tdaemons whose operations are added up: [tls:]host:port, unix:/path [the daemon of --listen]"
	return own
}

// slotRates reads the counts of all daemons twice. A daemon that does not answer is named in the output.
func (a *App) slotRates(ctx context.Context, c connection) ([]SlotRate, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("slots: %w%w", err, usage{})
	}
	var all []*daemons
	for _, address := range c.connect {
		one := c
		one.connect = []string{address}
		d := a.daemons(one)
		defer d.close()
		all = append(all, d)
	}
	before, began := map[SlotRate]int64{}, time.Now()
	for i, d := range all {
		counts, err := d.slotCounts(ctx)
		if err != nil {
			fmt.Fprintf(a.Err, "operations of the daemon at %s are unknown: %v; name the daemons with --connect\n", c.connect[i], err)
			all[i] = nil
			continue
		}
		add(before, counts, 1)
	}
	pause(ctx, refreshInterval)
	changes := map[SlotRate]int64{}
	for _, d := range all {
		if d == nil {
			continue
		}
		counts, err := d.slotCounts(ctx)
		if err != nil {
			return nil, fmt.Errorf("slots: %w", err)
		}
		add(changes, counts, 1)
	}
	add(changes, before, -1)
	var rates []SlotRate
	for of, n := range changes {
		of.PerSecond = max(0, float64(n)/time.Since(began).Seconds())
		rates = append(rates, of)
	}
	return rates, nil
}

func add(to, counts map[SlotRate]int64, sign int64) {
	for of, n := range counts {
		to[of] += sign * n
	}
}

// slotCounts are the operations of each range since the daemon's start.
func (d *daemons) slotCounts(ctx context.Context) (map[SlotRate]int64, error) {
	reply, err := d.do(ctx, slotsTimeout, "INFO", "slots")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	counts := map[SlotRate]int64{}
	for line := range strings.Lines(text) {
		name, values, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.HasPrefix(name, "slots") {
			continue
		}
		var one SlotRate
		n := int64(0)
		for field := range strings.SplitSeq(values, ",") {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "slots":
				one.Range = value
			case "group":
				one.Group = value
			case "operations":
				n, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		counts[one] += n
	}
	return counts, nil
}
