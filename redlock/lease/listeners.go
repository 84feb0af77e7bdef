package lease

import (
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/events"
)

// listeners passes what happens to the listeners of events.
type listeners struct{ *events.Events }

var eventKinds = [...]events.Kind{
	acquired: events.Acquired, extended: events.Extended, shortened: events.Shortened, released: events.Released, forced: events.Forced,
}

func (l listeners) changed(c change, id engine.LeaseID, known leaseRecord, _, lasts time.Duration, r *LockRequest) {
	if c == acquired {
		l.EmitAcquired(id, known.fence, lasts, r.Meta())
		return
	}
	l.Emit(eventKinds[c], id, known.fence, lasts)
}

func (listeners) ends(*engine.Batch, engine.LeaseID, leaseRecord) {}
