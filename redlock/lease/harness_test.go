package lease

// harness_test.go: the leases of a daemon without wait queues and renewals, on embedded masters.

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
)

// pureDaemon is Leases on five embedded masters.
type pureDaemon struct {
	*Leases
	t       *testing.T
	changes *noted
}

// noted are the changes that go up.
type noted struct{ refused chan []engine.LeaseID }

var _ Changes = (*noted)(nil)

func (n *noted) Released(engine.LeaseID)                  {}
func (n *noted) Forced(engine.LeaseID)                    {}
func (n *noted) Extended([]engine.LeaseID, time.Duration) {}
func (n *noted) Shortened(engine.LeaseID, time.Duration)  {}
func (n *noted) Copied(ids []engine.LeaseID, taken bool) {
	if !taken {
		n.refused <- ids
	}
}

func newPureDaemon(t *testing.T) *pureDaemon {
	t.Helper()
	// The master timeout is wide, so that a busy machine fails nothing.
	return newDaemonOn(t, pool.Options{Embedded: 5, MasterTimeout: time.Minute, Late: 100 * time.Millisecond})
}

func newDaemonOn(t *testing.T, o pool.Options) *pureDaemon {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	e, texts, err := engine.New(p, "", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	d := &pureDaemon{New(e, events.New(e), engine.NewToken, false), t, &noted{make(chan []engine.LeaseID, 10)}}
	d.Connect(func(*engine.Batch, int, engine.Key) {}, d.changes)
	p.Start(texts...)
	return d
}

func (d *pureDaemon) lock(r LockRequest) (Grant, error) {
	d.t.Helper()
	type answer struct {
		g   Grant
		err error
	}
	answers := make(chan answer, 1)
	d.Lock(nil, r, func(g Grant, err error) { answers <- answer{g, err} })
	a := <-answers
	return a.g, a.err
}

// take is lock for what must be granted.
func (d *pureDaemon) take(r LockRequest) Grant {
	d.t.Helper()
	if r.TTL == 0 {
		r.TTL = time.Minute
	}
	g, err := d.lock(r)
	if err != nil {
		d.t.Fatalf("lock %+v: %v", r, err)
	}
	return g
}

func (d *pureDaemon) unlock(key engine.Key, token engine.Token) (bool, error) {
	type answer struct {
		was bool
		err error
	}
	answers := make(chan answer, 1)
	d.Unlock(nil, UnlockRequest{Key: key, Token: token}, func(was bool, err error) { answers <- answer{was, err} })
	a := <-answers
	return a.was, a.err
}

// onMasters does something to every master behind the daemon's back.
func (d *pureDaemon) onMasters(f func(lane int)) {
	for lane := range d.engine.Pool.N() {
		f(lane)
	}
}

// holders counts the masters that hold the key for a token.
func (d *pureDaemon) holders(db int, key, token string) (n int) {
	d.onMasters(func(lane int) {
		if got, err := d.engine.Pool.Embedded().At(lane).Server().DB(db).Get(key); err == nil && got == token {
			n++
		}
	})
	return n
}

// quiet waits until the lanes have nothing left to do.
func (d *pureDaemon) quiet() {
	d.t.Helper()
	eventually(d.t, "nothing is in flight", func() bool {
		return d.engine.InFlight()+d.observers[0].(listeners).Busy()+d.engine.Pool.Busy() == 0
	})
}

// eventually waits until it is true, for a minute.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within a minute it did not come about that %s", what)
		}
	}
}
