// Event subscriber: a connection to one master that has subscribed and does nothing else.

package notify

import (
	"context"
	"sync/atomic"
	"time"

	"redlockd/pool/wire"
)

// subscribeRetry is the pause before a lost connection is replaced.
const subscribeRetry = time.Second

// eventSubscriber keeps a subscription to one master, on a goroutine of its own.
type eventSubscriber struct {
	events *Events
	master wire.Master
	since  atomic.Int64 // ns of the pool's clock at which it subscribed, 0 = it is not subscribed
	stop   context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended
}

func newEventSubscriber(e *Events, m wire.Master) *eventSubscriber {
	ctx, stop := context.WithCancel(context.Background())
	h := &eventSubscriber{events: e, master: m, stop: stop, ended: make(chan struct{})}
	go h.run(ctx)
	return h
}

// run connects again and again, until ctx ends.
func (es *eventSubscriber) run(ctx context.Context) {
	defer close(es.ended)
	e := es.events
	for {
		err := wire.Subscribe(ctx, es.master, e.Channel, e.Timeout, func() { es.since.Store(max(int64(e.Clock.Now()), 1)) }, e.deliver)
		es.since.Store(0)
		if ctx.Err() != nil {
			return
		}
		e.Logger.Debug("no events from master for now", "master", es.master.Name, "err", err.Error())
		over, end := context.WithCancel(ctx)
		retry := e.Clock.AfterFunc(subscribeRetry, end)
		<-over.Done()
		retry.Stop()
		end()
	}
}

// subscribedSince reports whether it has received everything since then.
func (es *eventSubscriber) subscribedSince(then time.Duration) bool {
	since := es.since.Load()
	return since != 0 && since < int64(then)
}

func (es *eventSubscriber) close() {
	es.stop()
	<-es.ended
}
