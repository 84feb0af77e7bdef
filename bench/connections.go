// The daemon with 50 connections, as of many processes. Each sends some commands in one
// write, reads the replies and continues.

package main

import (
	"context"
	"fmt"
)

const connectionCount = 50

func connectionsName(depth int) string {
	return fmt.Sprintf("daemon, %d connections, depth %d", connectionCount, depth)
}

func connectionScenarios() []scenario {
	var all []scenario
	for _, depth := range []int{1, 16} {
		all = append(all, scenario{
			name: connectionsName(depth),
			page: pagePairs, peer: redsyncName(64), run: pairs(connectionCount, openConnections(depth)),
		})
	}
	return all
}

func openConnections(depth int) opener {
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
		var opened []*connectionWorker
		c := workerSet{daemons: []*daemon{tb.daemon}, close: func() {
			for _, w := range opened {
				w.conn.close()
			}
		}}
		for i := range n {
			conn, err := dialRESP(ctx, tb.daemon.address)
			if err != nil {
				c.close()
				return workerSet{}, err
			}
			w := newConnectionWorker(conn, i, depth)
			opened = append(opened, w)
			c.workers = append(c.workers, w)
		}
		return c, nil
	}
}

// connectionWorker is one connection with depth locks at a time.
type connectionWorker struct {
	conn   *respConn
	ttl    string
	keys   []string
	tokens []string // of the keys; "" for a lock that was not granted
}

func newConnectionWorker(conn *respConn, i, depth int) *connectionWorker {
	w := &connectionWorker{conn: conn, ttl: leaseMillis, tokens: make([]string, depth)}
	for j := range depth {
		w.keys = append(w.keys, fmt.Sprintf("bench:connection:%d:%d", i, j))
	}
	return w
}

func (w *connectionWorker) turn(n *recorder) error {
	for _, key := range w.keys {
		w.conn.queue("DLOCK", key, w.ttl)
	}
	stage, began := n.now()
	if err := w.conn.flush(); err != nil {
		return err
	}
	for i := range w.keys {
		r, err := w.conn.read()
		if err != nil {
			return err
		}
		if r.Kind != '*' || len(r.Items) != 3 {
			return fmt.Errorf("DLOCK of an uncontended lock: %c%s", r.Kind, r.Text)
		}
		n.acquired(stage, began)
		w.tokens[i] = r.Items[0].Text
	}
	return w.release(n)
}

func (w *connectionWorker) release(n *recorder) error {
	for i, key := range w.keys {
		w.conn.queue("DUNLOCK", key, w.tokens[i])
	}
	if err := w.conn.flush(); err != nil {
		return err
	}
	for range w.keys {
		r, err := w.conn.read()
		switch {
		case err != nil:
			return err
		case r.Kind != ':':
			return fmt.Errorf("DUNLOCK: %c%s", r.Kind, r.Text)
		case r.Int != 1:
			return errNotReleased
		}
		n.released()
	}
	return nil
}
