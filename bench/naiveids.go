// The usual algorithm for ids, as a peer. A caller reads the counter of all masters,
// takes the highest plus one, and writes it where it is higher. If a majority accepted
// it, it is an id, otherwise the caller starts again. Every caller has its own
// connections and uses all masters at the same time.

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"redlockd/proxy/resp"
)

const (
	naiveKey    = "bench:naive:id"
	naiveScript = "if tonumber(redis.call('GET',KEYS[1]) or '0')<tonumber(ARGV[1]) then redis.call('SET',KEYS[1],ARGV[1]) return 1 end return 0"
	// naivePause bounds the pause before the second round. The bound doubles from round to
	// round, up to a hundred times as much.
	naivePause = time.Millisecond
)

// openNaive opens callers that retry at once if the pause is 0.
func openNaive(pause time.Duration) opener {
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
		c := workerSet{close: func() {}}
		for range n {
			w := &naiveWorker{pause: pause}
			for _, address := range tb.addresses() {
				conn, err := dialRESP(ctx, address)
				if err != nil {
					return workerSet{}, errors.Join(err, c.closeNow())
				}
				c.addCloser(conn.close)
				w.masters = append(w.masters, conn)
				sha, err := conn.do("SCRIPT", "LOAD", naiveScript)
				if err != nil {
					return workerSet{}, errors.Join(err, c.closeNow())
				}
				w.sha = sha.Text
			}
			c.workers = append(c.workers, w)
		}
		return c, nil
	}
}

// naiveWorker is one caller.
type naiveWorker struct {
	masters []*respConn
	sha     string
	pause   time.Duration
}

// turn draws one id in as many rounds as needed. At the end of the run, the round in progress
// is the last.
func (w *naiveWorker) turn(n *recorder) error {
	stage, began := n.now()
	for maxWait := w.pause; ; maxWait = min(2*maxWait, 100*w.pause) {
		taken, err := w.round()
		if err != nil {
			return err
		}
		if taken {
			n.acquired(stage, began)
			n.released()
			return nil
		}
		if n.stopped() {
			return nil
		}
		if maxWait > 0 {
			time.Sleep(rand.N(maxWait))
		}
	}
}

func (w *naiveWorker) round() (taken bool, err error) {
	answers, err := w.broadcast("GET", naiveKey)
	if err != nil {
		return false, err
	}
	highest := int64(0)
	for _, a := range answers {
		if value, err := strconv.ParseInt(a.Text, 10, 64); err == nil {
			highest = max(highest, value)
		}
	}
	answers, err = w.broadcast("EVALSHA", w.sha, "1", naiveKey, strconv.FormatInt(highest+1, 10))
	if err != nil {
		return false, err
	}
	votes := int64(0)
	for _, a := range answers {
		votes += a.Int
	}
	return votes > int64(len(w.masters)/2), nil
}

// broadcast sends a command to all masters, then reads all answers.
func (w *naiveWorker) broadcast(words ...string) ([]resp.Value, error) {
	for _, m := range w.masters {
		m.queue(words...)
		if err := m.flush(); err != nil {
			return nil, err
		}
	}
	var answers []resp.Value
	for _, m := range w.masters {
		r, err := m.read()
		if err = errors.Join(err, r.Err()); err != nil {
			return nil, err
		}
		answers = append(answers, r)
	}
	return answers, nil
}
