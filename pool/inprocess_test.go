package pool

import (
	"log/slog"
	"testing"
	"time"
)

func TestEmbedded_TheLongMasterTimeoutIsNotAddedToLeases(t *testing.T) {
	real := []Master{{Name: "a", Address: "a"}, {Name: "b", Address: "b"}, {Name: "c", Address: "c"}}
	for _, test := range []struct {
		options       Options
		timeout, late time.Duration
	}{
		{Options{Embedded: 3}, time.Second, 100 * time.Millisecond},
		{Options{Embedded: 3, MasterTimeout: 300 * time.Millisecond}, time.Second, 300 * time.Millisecond},
		{Options{Embedded: 3, MasterTimeout: 5 * time.Second}, 5 * time.Second, 5 * time.Second},
		{Options{Embedded: 3, MasterTimeout: 5 * time.Second, Late: time.Millisecond}, 5 * time.Second, time.Millisecond},
		{Options{Masters: real}, 100 * time.Millisecond, 100 * time.Millisecond},
		{Options{Masters: real, MasterTimeout: 300 * time.Millisecond, Late: time.Millisecond}, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		o := test.options
		if err := o.WithDefaults(); err != nil {
			t.Fatal(err)
		}
		if o.MasterTimeout != test.timeout || o.Late != test.late {
			t.Errorf("%d embedded, master timeout %v: %v and late %v, want %v and %v", test.options.Embedded,
				test.options.MasterTimeout, o.MasterTimeout, o.Late, test.timeout, test.late)
		}
	}
}

// However long an answer is under way, the clock of an embedded master is known exactly.
func TestEmbedded_TheClockOfTheMastersIsTheDaemonsOwn(t *testing.T) {
	c := newHandClock()
	p, err := New(Options{Embedded: 3, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l := &lane{group: &Group{pool: p}}
	for _, took := range []time.Duration{0, time.Millisecond, 600 * time.Millisecond, time.Hour} {
		sent := c.Now()
		c.mu.Lock()
		c.now += took
		c.mu.Unlock()
		err := l.checkClockLocked(&flush{sent: sent}, c.Now(), 0)
		if late := took > p.options.MasterTimeout; late != (err == errLate) {
			t.Errorf("an answer after %v: %v", took, err)
		}
		for i := range 3 {
			if shows := p.Embedded().At(i).Time().UnixMicro(); shows != l.est.At(c.Now()) {
				t.Errorf("after %v master %d shows %d, estimated is %d", took, i, shows, l.est.At(c.Now()))
			}
		}
	}
}
