package homes

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/slots"
)

const own, other, third = "10.0.0.1:7379", "10.0.0.2:7379", "host-3.example:7379"

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// still is a clock that stands still.
type still struct{ pool.Clock }

func (still) Now() time.Duration { return time.Hour }

// alone is a daemon whose messages the test writes.
func alone(t *testing.T) (*Homes, *redlocktest.Clock) {
	t.Helper()
	clock := redlocktest.NewClock()
	clock.Clock = still{clock.Clock}
	p, err := pool.New(pool.Options{Embedded: 3, Clock: clock, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return New(own, []slots.Ranges{{{First: 8192, Last: 16383}}, {{First: 0, Last: 8191}}}, quiet, p), clock
}

func (h *Homes) wants(t *testing.T, want ...string) {
	t.Helper()
	d := h.Division()
	if !slices.Equal(d.Daemons, want) || d.Own != own && d.Own != other {
		t.Errorf("the slots are divided among %q by %s, want %q", d.Daemons, d.Own, want)
	}
	if !slices.Equal(d.Homes, slots.Homes([]slots.Ranges{{{First: 0, Last: 8191}}, {{First: 8192, Last: 16383}}}, want)) {
		t.Errorf("division %v", d.Homes)
	}
}

func TestHomes_DaemonsComeAndGo(t *testing.T) {
	h, clock := alone(t)
	h.wants(t, own)
	h.receive("1 " + other)
	h.receive("1 " + other) // by way of another master
	h.receive("1 " + third + " joins")
	h.wants(t, own, other) // it accepts no clients yet
	h.receive("1 " + third)
	h.wants(t, own, other, third)
	h.receive("1 " + other + " leaves")
	h.wants(t, own, third)
	clock.Ahead.Add(int64(maxSilence))
	h.receive("1 " + other)
	h.wants(t, own, other, third)
	clock.Ahead.Add(int64(time.Millisecond))
	h.wants(t, own, other) // the third has not announced itself for longer than allowed
	clock.Ahead.Add(int64(2 * maxSilence))
	h.wants(t, own)
}

func TestHomes_FollowSlotsThatMove(t *testing.T) {
	h, _ := alone(t)
	h.receive("1 " + other)
	h.wants(t, own, other)
	moved := []slots.Ranges{{{First: 0, Last: 99}}, {{First: 100, Last: 16383}}}
	h.SetGroups([]slots.Ranges{moved[1], moved[0]})
	if d := h.Division(); !slices.Equal(d.Homes, slots.Homes(moved, []string{own, other})) {
		t.Errorf("division %v", d.Homes)
	}
	h.receive("1 " + third)
	if d := h.Division(); !slices.Equal(d.Homes, slots.Homes(moved, []string{own, other, third})) {
		t.Errorf("division %v with a third daemon", d.Homes)
	}
	(*Homes)(nil).SetGroups(moved)
}

func TestHomes_AMessageThatIsNoneChangesNothing(t *testing.T) {
	h, _ := alone(t)
	for _, message := range []string{"", "1", "1 ", "2 10.0.0.2:7379", "1 no-port", "1 leaves", "1 joins", "1 10.0.0.2:7379 joins leaves", "1 a:1:2", "10.0.0.2:7379", "1 " + strings.Repeat("a", maxAddress) + ":1"} {
		h.receive(message)
	}
	h.wants(t, own)
	for i := range 2 * maxDaemons {
		h.receive(fmt.Sprintf("1 10.1.%d.%d:7379", i/256, i%256))
	}
	if n := len(h.Division().Daemons); n != maxDaemons+1 {
		t.Errorf("%d daemons are remembered, allowed are %d", n, maxDaemons)
	}
}

func TestHomes_DaemonsHearOneAnotherOverTheMasters(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, redlocktest.Long)
	var daemons [3]*redlocktest.Daemon
	for i := range daemons {
		daemons[i] = c.Daemon(func(d *redlocktest.Daemon) {
			d.Connect(func(*engine.Batch, int, engine.Key) {}, redlocktest.NoChanges{})
		})
	}
	enter := func(i int, address string) *Homes {
		return New(address, []slots.Ranges{slots.All()}, quiet, daemons[i].Engine.Pool)
	}
	awaits := func(h *Homes, want ...string) {
		t.Helper()
		redlocktest.Eventually(t, fmt.Sprintf("%s divides the slots among %q", h.own, want), func() bool {
			return slices.Equal(h.Division().Daemons, want)
		})
	}
	one := enter(0, own)
	awaits(one, own)
	two := enter(1, other)
	two.AwaitOthers(t.Context())
	awaits(two, own, other)
	awaits(one, own, other)
	c.Masters[0].Kill() // the other masters carry the messages as well
	three := enter(2, third)
	awaits(one, own, other, third)
	three.Close()
	awaits(one, own, other)
	daemons[0].Engine.Pool.Close() // without a word
	daemons[1].Clock.Ahead.Add(int64(maxSilence + announceEvery))
	awaits(two, other)
}
