package inspect

import (
	"errors"
	"hash/maphash"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/lease"
)

// newInspectorOf is an Inspector of embedded masters without locks.
func newInspectorOf(t *testing.T, n int) *Inspector {
	t.Helper()
	p, err := pool.New(pool.Options{Embedded: n, MasterTimeout: time.Minute, Late: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	e, texts, err := engine.New(p, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	p.Start(texts...)
	return New(e, lease.New(e, events.New(e), engine.NewToken, false), slog.Default(), Local{
		Waiters: func(int, engine.Key) int { return 0 }, Wanted: func(int, engine.Key) *string { return nil },
	})
}

func TestListLocks_RefusesCursorsThatNoWalkAnswers(t *testing.T) {
	t.Parallel()
	d := newInspectorOf(t, 3)
	list := func(r Listing) (err error) {
		d.ListLocks(r, func(_ LockPage, e error) { err = e }) // at once: nothing is sent
		return err
	}
	good := walkCursor{scan: 5, memory: 77, complete: 1, at: 2}
	if back, err := unpackCursor(good.pack(), 3); back != good || err != nil {
		t.Fatalf("%+v became %+v, %v", good, back, err)
	}
	for _, bad := range []walkCursor{
		{at: 3}, {scan: 5}, {memory: 5}, {at: 9, complete: 15, scan: 1, memory: 1},
	} {
		if err := list(Listing{Cursor: bad.pack(), Count: 10}); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, bad := range []uint64{1 << 63, 5, 1 << CursorBits} {
		if err := list(Listing{Cursor: bad, Count: 10}); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%d: %v", bad, err)
		}
	}
	if last := (walkCursor{scan: 1<<scanBits - 1, memory: memoryMask, complete: 255, at: 8}); last.pack()>>CursorBits != 0 {
		t.Errorf("%d has more than %d bits", last.pack(), CursorBits)
	}
	if d.engine.InFlight() != 0 {
		t.Errorf("%d operations are still in flight", d.engine.InFlight())
	}
}

// Many clients begin a walk and give it up. What is remembered of them makes place for others.
func TestReported_WalksThatWereGivenUpMakePlace(t *testing.T) {
	t.Parallel()
	r := reported{seed: maphash.MakeSeed()}
	step := func(client int64, locks int) {
		keys := r.take(client, 0, 0)
		for i := range locks {
			r.isNew(engine.Key(strconv.Itoa(i)), keys)
		}
		r.keep(client, 0, 7, keys)
	}
	for client := range int64(4) {
		step(1+client, maxReported/4)
	}
	for client := range int64(2 * maxReported / walkCost) {
		step(10+client, 0)
	}
	if n := len(r.walks); n > maxReported/walkCost || n == 0 {
		t.Errorf("%d walks are remembered, at most %d have space", n, maxReported/walkCost)
	}
	step(1, 3)
	again := r.take(1, 0, 7)
	if r.isNew("2", again) || !r.isNew("new", again) {
		t.Error("the next step of a walk does not list the new lock alone")
	}
	for client := range r.walks {
		r.take(client, 0, 0)
	}
	if r.total != 0 {
		t.Errorf("without walks %d locks are counted", r.total)
	}
}
