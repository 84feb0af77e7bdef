package renew

// wanted_test.go: requests to let go of a lock.

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// told are the requests that holders have received.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (td *told) add(line string) {
	td.mu.Lock()
	defer td.mu.Unlock()
	td.lines = append(td.lines, line)
}

func (td *told) has(t *testing.T, lines ...string) {
	t.Helper()
	td.mu.Lock()
	defer td.mu.Unlock()
	if !slices.Equal(td.lines, lines) {
		t.Errorf("told %q, want %q", td.lines, lines)
	}
	td.lines = nil
}

// text is what DINFO shows.
func (d *daemon) text(key engine.Key) string {
	text := d.WantedText(0, key)
	if text == nil {
		return "none"
	}
	return *text
}

// tell is Wanted without whether the holder is alone.
func (d *daemon) tell(db int, key engine.Key, text string) int {
	n, _ := d.Wanted(db, key, text)
	return n
}

// The clock is moved.
func TestWanted_TheHolderIsNotifiedOnceASecondAndKeepsItsLock(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	l := &told{}
	terms := func(name string) Terms {
		return Terms{
			OnEnd:    func(lease.Grant, error, time.Duration) {},
			OnWanted: func(key engine.Key, text string) { l.add(fmt.Sprintf("%s %s %s", name, key, text)) },
		}
	}
	d.Take(lease.LockRequest{Key: "plain", TTL: time.Minute})
	if n := d.tell(0, "plain", "x"); n != 0 || d.text("plain") != "none" {
		t.Errorf("a lock without HOLD: %d are notified, shown is %q", n, d.text("plain"))
	}
	g := d.Take(lease.LockRequest{Key: "a", More: []engine.Key{"b"}, TTL: time.Minute})
	d.Begin(g, terms("two"))
	for _, other := range []int{d.tell(1, "a", "x"), d.tell(0, "c", "x")} {
		if other != 0 {
			t.Error("another key's or database's holder is notified")
		}
	}
	if n := d.tell(0, "b", "first"); n != 1 || d.text("b") != "first" || d.text("a") != "none" {
		t.Errorf("%d are notified, shown are %q and %q", n, d.text("b"), d.text("a"))
	}
	l.has(t, "two b first")
	d.tell(0, "b", "second") // at once: a client could be flooded
	l.has(t)
	if got := d.text("b"); got != "second" {
		t.Errorf("shown is %q, want the latest", got)
	}
	d.Clock.Ahead.Add(int64(wantedInterval))
	d.tell(0, "b", "third")
	l.has(t, "two b third")
	if n := d.Count(); n != 1 {
		t.Errorf("%d holds, want that nothing has changed", n)
	}
	d.Of(&g).End()
	if n := d.tell(0, "b", "x"); n != 0 || d.text("b") != "none" || d.wanted != 0 {
		t.Errorf("after the end: %d are notified, shown is %q, %d are counted", n, d.text("b"), d.wanted)
	}
	for range 2 {
		d.Begin(d.Take(lease.LockRequest{Key: "r", Mode: lease.Readers, TTL: time.Minute}), terms("reader"))
	}
	if n := d.tell(0, "r", "x"); n != 2 {
		t.Errorf("%d readers are notified, want 2", n)
	}
	l.has(t, "reader r x", "reader r x")
}
