// The lowest cost that the masters allow: plain SET NX PX and a compare-and-delete in
// batches, and a majority of votes. There is no seal, no fence, no deadline, no undo and
// no reconnect, so it is no usable lock.

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"redlockd/proxy/resp"
)

const floorRelease = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"

func floorName(n int) string { return "floor: batched SET NX PX, " + callers(n) }

func floorScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: floorName(n),
			page: pagePairs, peer: redsyncName(n), run: pairs(n, openFloor),
		})
	}
	return all
}

func openFloor(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	f := &floor{ttl: leaseMillis}
	for _, address := range tb.addresses() {
		conn, err := dialRESP(ctx, address)
		if err != nil {
			f.close()
			return workerSet{}, err
		}
		lane := &floorLane{floor: f, conn: conn}
		lane.filled.L = &lane.mu
		f.lanes = append(f.lanes, lane)
		sha, err := conn.do("SCRIPT", "LOAD", floorRelease)
		if err != nil {
			f.close()
			return workerSet{}, err
		}
		f.sha = sha.Text
	}
	for _, lane := range f.lanes {
		f.running.Go(lane.run)
	}
	c := workerSet{close: f.close}
	for i := range n {
		c.workers = append(c.workers, &floorWorker{floor: f, number: i, keys: workerKeys("floor", i)})
	}
	return c, nil
}

// floor is a lane for each master.
type floor struct {
	lanes   []*floorLane
	running sync.WaitGroup
	sha     string // of floorRelease
	ttl     string
}

func (f *floor) close() {
	for _, lane := range f.lanes {
		lane.end()
	}
	f.running.Wait()
	for _, lane := range f.lanes {
		lane.conn.close()
	}
}

// broadcast sends one command to all masters and waits for a majority.
func (f *floor) broadcast(o *floorOp) error {
	o.decided = make(chan error, 1) // one outcome
	for _, lane := range f.lanes {
		lane.push(o)
	}
	return <-o.decided
}

// floorOp is one acquire or release.
type floorOp struct {
	key, token string
	release    bool
	votes      atomic.Int64 // yes + no<<32
	decided    chan error
}

// vote decides at the first majority of either kind. That happens once, because the count
// grows by one.
func (o *floorOp) vote(yes bool, majority int64) {
	if yes {
		if o.votes.Add(1)&0xffffffff == majority {
			o.decided <- nil
		}
	} else if o.votes.Add(1<<32)>>32 == majority {
		o.decided <- errRefused
	}
}

// floorLane is the lane of one master. It sends its whole queue in one write, again and again.
type floorLane struct {
	floor *floor
	conn  *respConn

	mu     sync.Mutex
	filled sync.Cond
	queue  []*floorOp
	ended  bool
}

func (l *floorLane) push(o *floorOp) {
	l.mu.Lock()
	l.queue = append(l.queue, o)
	l.mu.Unlock()
	l.filled.Signal()
}

func (l *floorLane) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.filled.Signal()
}

// take waits for operations to send. nil means the end.
func (l *floorLane) take(spare []*floorOp) []*floorOp {
	runtime.Gosched() // lets callers that are about to queue an operation join the batch
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.ended {
		l.filled.Wait()
	}
	batch := l.queue
	l.queue = spare[:0]
	return batch
}

// run ends with the lane. A broken connection votes no for all operations.
func (l *floorLane) run() {
	majority := int64(len(l.floor.lanes)/2 + 1)
	var broken error
	var batch []*floorOp
	for {
		spare := batch
		if batch = l.take(spare); len(batch) == 0 {
			return
		}
		for _, o := range batch {
			if o.release {
				l.conn.queue("EVALSHA", l.floor.sha, "1", o.key, o.token)
			} else {
				l.conn.queue("SET", o.key, o.token, "NX", "PX", l.floor.ttl)
			}
		}
		if broken == nil {
			broken = l.conn.flush()
		}
		for _, o := range batch {
			var r resp.Value
			if broken == nil {
				r, broken = l.conn.read()
			}
			o.vote(r.Kind == '+' || r.Kind == ':' && r.Int == 1, majority)
		}
	}
}

// floorWorker is one caller.
type floorWorker struct {
	floor        *floor
	number, next int
	keys         []string
}

func (w *floorWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	token := fmt.Sprintf("%d-%d", w.number, w.next)
	stage, began := n.now()
	if err := w.floor.broadcast(&floorOp{key: key, token: token}); err != nil {
		return err
	}
	n.acquired(stage, began)
	if err := w.floor.broadcast(&floorOp{key: key, token: token, release: true}); err != nil {
		return errNotReleased
	}
	n.released()
	return nil
}
