package redlock

// scriptwait_test.go: waiting until somebody else lets go.

import (
	"errors"
	"testing"
	"time"
)

// freed is what AwaitFree answered.
type freed struct {
	free bool
	err  error
}

func (d *daemon) awaitFree(key Key, patience time.Duration) (answer <-chan freed, leave func()) {
	answers := make(chan freed, 1) // it answers once
	leave = d.AwaitFree(0, key, patience, func(free bool, err error) { answers <- freed{free, err} })
	return answers, leave
}

func TestAwaitFree_AnswersOnceNobodyHoldsTheKey(t *testing.T) {
	d := newCluster(t, 3, time.Minute).daemon()
	free, _ := d.awaitFree("k", time.Minute)
	if a := receive(t, free); !a.free || a.err != nil {
		t.Errorf("of a free key: %+v", a)
	}
	held := d.take("k", 20*time.Second)
	inVain, _ := d.awaitFree("k", 50*time.Millisecond)
	if a := receive(t, inVain); a.free || a.err != nil {
		t.Errorf("of a held one, in vain: %+v", a)
	}
	left, leave := d.awaitFree("k", time.Minute)
	leave()
	leave()
	if a := receive(t, left); a.free || a.err != nil {
		t.Errorf("of a client that has gone: %+v", a)
	}
	waits, _ := d.awaitFree("k", time.Minute)
	d.free("k", held.Token)
	if a := receive(t, waits); !a.free || a.err != nil {
		t.Errorf("after the release: %+v", a)
	}
	d.take("k", time.Second)
	expires, _ := d.awaitFree("k", time.Minute)
	if a := receive(t, expires); !a.free || a.err != nil {
		t.Errorf("after the lease: %+v", a)
	}
	if n := d.Waiters(); n != 0 {
		t.Errorf("%d wait, want nobody", n)
	}
}

func TestAwaitFree_EndsWithTheDaemon(t *testing.T) {
	d := newCluster(t, 3, time.Minute).daemon()
	d.take("k", 20*time.Second)
	waits, _ := d.awaitFree("k", time.Minute)
	d.EndWaits()
	if a := receive(t, waits); !errors.Is(a.err, ErrShutdown) {
		t.Errorf("%+v, want that the daemon shuts down", a)
	}
}
