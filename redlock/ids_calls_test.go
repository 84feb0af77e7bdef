package redlock

// ids_calls_test.go turns the Locker's calls about ids into answers that a test
// can wait for, and runs single scripts on a master.

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// longRun: the volumes of a release instead of those of every change.
func longRun() bool { return os.Getenv("REDLOCKD_LONG") == "1" }

// durable are the settings of a master that has on disk whatever it answered.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

// volatileIDs lets a daemon count on masters that may forget, as an operator can.
func (d *daemon) volatileIDs() *daemon {
	d.IDs.Volatile = true
	return d
}

type idAnswer struct {
	first int64
	err   error
}

func (d *daemon) requestIDs(r IDRequest) <-chan idAnswer {
	answer := make(chan idAnswer, 1) // 1: its one answer
	d.NextID(nil, r, func(first int64, err error) { answer <- idAnswer{first, err} })
	return answer
}

// ids asks for count ids.
func (d *daemon) ids(name Key, count int64) (int64, error) {
	d.t.Helper()
	a := receive(d.t, d.requestIDs(IDRequest{Name: name, Count: count}))
	return a.first, a.err
}

// draw is ids for a counter that must answer.
func (d *daemon) draw(name Key, count int64) int64 {
	d.t.Helper()
	first, err := d.ids(name, count)
	if err != nil || first < 1 {
		d.t.Fatalf("%d ids of %q: %d, %v, want ids", count, name, first, err)
	}
	return first
}

// reseed sets a counter by the operator's word.
func (d *daemon) reseed(name Key, value int64) error {
	d.t.Helper()
	answer := make(chan error, 1)
	d.Reseed(0, name, value, func(err error) { answer <- err })
	return receive(d.t, answer)
}

// deleteCounter deletes a counter by the operator's word.
func (d *daemon) deleteCounter(name Key, confirm int64) ([]CounterFate, error) {
	d.t.Helper()
	return d.deleting(name, confirm)()
}

// deleting is a deletion under way.
func (d *daemon) deleting(name Key, confirm int64) (outcome func() ([]CounterFate, error)) {
	type answer struct {
		fates []CounterFate
		err   error
	}
	answers := make(chan answer, 1)
	d.DeleteCounter(0, name, confirm, func(fates []CounterFate, err error) { answers <- answer{fates, err} })
	return func() ([]CounterFate, error) {
		d.t.Helper()
		a := receive(d.t, answers)
		return a.fates, a.err
	}
}

// counter is what the masters know, in their order.
func (d *daemon) counter(name Key) []CounterOnMaster {
	d.t.Helper()
	answer := make(chan Counter, 1)
	d.ReadCounter(0, name, func(c Counter, err error) {
		if err != nil {
			d.t.Errorf("reading counter %q: %v", name, err)
		}
		answer <- c
	})
	return receive(d.t, answer).Masters
}

// counters are the names a daemon finds.
func (d *daemon) counters(db int) []Key {
	d.t.Helper()
	answer := make(chan []Key, 1)
	d.ListCounters(db, func(names []Key, err error) {
		if err != nil {
			d.t.Errorf("listing counters: %v", err)
		}
		answer <- names
	})
	return receive(d.t, answer)
}

// lostState wants a counter that no trusted quorum remembers.
func lostState(t *testing.T, err error, trusted int) *LostState {
	t.Helper()
	var lost *LostState
	if !errors.As(err, &lost) {
		t.Fatalf("answered %v, want LostState", err)
	}
	if lost.Trusted != trusted || !strings.Contains(err.Error(), "DIDRESEED "+string(lost.Counter)) {
		t.Errorf("%v: want %d trusted masters and the command that reseeds", err, trusted)
	}
	return lost
}

// cutOff takes a master from a relayed daemon, until reconnect.
func (d *daemon) cutOff(i int) {
	d.t.Helper()
	d.relays[i].Refuse()
	d.relays[i].Cut()
	d.await(i, "down")
}

func (d *daemon) reconnect(i int, want string) {
	d.t.Helper()
	d.relays[i].Accept()
	d.await(i, want)
}

// timeout is the trait of a daemon that waits so long for a master.
func timeout(limit time.Duration) trait {
	return func(_ *daemon, o *pool.Options) { o.MasterTimeout = limit }
}
