// Work that is done once: a caller takes an attempt and marks it done, each time for a
// new piece of work. No peer counts attempts, so the ratio is to plain locks of redsync.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
)

func workScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 64} {
		all = append(all, scenario{
			name: "work: daemon, one multiplexed client, " + callers(n),
			page: pageWork, peer: redsyncName(n), run: pairs(n, openWork),
		})
	}
	return all
}

func openWork(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{tb.daemon.address}})
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{daemons: []*daemon{tb.daemon}, close: client.Close}
	began, err := clockOf(tb.masters[0])
	if err != nil {
		return workerSet{}, errors.Join(err, c.closeNow())
	}
	for i := range n {
		c.workers = append(c.workers, &workWorker{client: client, name: fmt.Sprintf("bench:work:%s:%d", began, i)})
	}
	return c, nil
}

// clockOf makes the names of a run unique, because masters remember finished work for a while.
func clockOf(m *master) (string, error) {
	r, err := m.control.do("TIME")
	if err != nil || len(r.Items) != 2 {
		return "", fmt.Errorf("TIME of a master: %w", err)
	}
	return r.Items[0].Text + r.Items[1].Text, nil
}

// workWorker does one piece of work after another. The masters remember each for a second.
type workWorker struct {
	client rueidis.Client
	name   string
	next   int
}

func (w *workWorker) turn(n *recorder) error {
	key := fmt.Sprintf("%s:%d", w.name, w.next)
	w.next++
	ctx := context.Background() // the daemon replies in time, or the run fails
	stage, began := n.now()
	taken, err := w.client.Do(ctx, w.client.B().Arbitrary("DWORK").Keys(key).Args(leaseMillis, "MAX", "3", "KEEP", "1000").Build()).ToArray()
	if err != nil {
		return err
	}
	if len(taken) != 6 {
		return fmt.Errorf("DWORK of uncontended work answered %d elements, want 6", len(taken))
	}
	n.acquired(stage, began)
	token, err := taken[2].ToString()
	if err != nil {
		return err
	}
	done, err := w.client.Do(ctx, w.client.B().Arbitrary("DWORKDONE").Keys(key).Args(token).Build()).AsInt64()
	if err != nil {
		return err
	}
	if done != 1 {
		return errNotReleased
	}
	n.released()
	return nil
}
