// Followers: which daemons use the configuration that a change has put in force.

package setup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"redlockd/pool/admission"
)

const (
	// maxFollow is how long daemons get to follow before the command reports those that have
	// not. They follow within a second, and a look of theirs may take another one.
	maxFollow   = 5 * time.Second
	followPause = 100 * time.Millisecond
)

// daemons are those that the masters list, also refused ones. A master that does not list its
// clients, or has daemons of an earlier version only, shows none.
func (c *change) daemons() (all []admission.Daemon) {
	for _, one := range c.all {
		if some, err := admission.Daemons(one.link, c.group.options.Group); err == nil {
			all = admission.MergeDaemons(all, some...)
		}
	}
	return all
}

// reportFollowers waits until the daemons of before use the next configuration, and writes which
// do and which do not. A refused daemon has no connection while it dials again, so those of before
// count, too.
func (c *change) reportFollowers(ctx context.Context) error {
	var now, stale []admission.Daemon
	for range maxFollow / followPause {
		now = slices.DeleteFunc(c.daemons(), func(d admission.Daemon) bool { return d.Epoch < c.next.Epoch })
		stale = slices.DeleteFunc(slices.Clone(c.before), func(d admission.Daemon) bool {
			return slices.ContainsFunc(now, func(follows admission.Daemon) bool { return follows.Name == d.Name })
		})
		if len(stale) == 0 {
			break
		}
		if err := c.group.sleep(ctx, followPause); err != nil {
			return err
		}
	}
	writeDaemons(now, c.out)
	for _, d := range stale {
		fmt.Fprintf(c.out, "daemon %s at %s (epoch %d) did not follow in %s: it has stopped, or reaches no quorum; its log has the reason\n",
			d.Name, d.Address, d.Epoch, humanDuration(maxFollow))
	}
	return nil
}

// minCountdown is the least time between two lines of a countdown.
const minCountdown = 10 * time.Second

// countdown lets time pass, and shows now and then how much is left.
func (g *group) countdown(ctx context.Context, wait time.Duration, text string, out io.Writer) error {
	for wait > 0 {
		fmt.Fprintf(out, text, humanDuration(wait))
		step := min(wait, max(minCountdown, wait/8))
		if err := g.sleep(ctx, step); err != nil {
			return err
		}
		wait -= step
	}
	return nil
}

// writeDaemons writes which daemons use the masters or are refused, and the epoch of each.
func writeDaemons(all []admission.Daemon, out io.Writer) {
	newest := int64(0)
	for _, d := range all {
		newest = max(newest, d.Epoch)
	}
	for _, d := range all {
		state := ""
		if d.Epoch < newest {
			state = "; it is stale and grants nothing: its log has the reason"
		}
		fmt.Fprintf(out, "daemon %s at %s uses epoch %d%s\n", d.Name, d.Address, d.Epoch, state)
	}
}
