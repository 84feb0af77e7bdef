package clock

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fresh is an estimate of a master whose clock equals ours, with this error.
func fresh(err int64, taken time.Duration) Estimate {
	return Estimate{Known: true, Err: err, Taken: taken}
}

func TestEstimate_TheFirstSampleIsTheMiddleOfItsRoundTrip(t *testing.T) {
	var e Estimate
	e.Sample(time.Second, time.Second+4*time.Millisecond, 5_000_000)
	if got := e.At(time.Second + 2*time.Millisecond); Abs(got-5_000_000) > 1 {
		t.Errorf("in the middle of the round trip it is %d, want 5000000", got)
	}
	if e.Err < 2000 || e.Err > 2002 {
		t.Errorf("error %d µs, want half the round trip", e.Err)
	}
}

func TestEstimate_TheMorePreciseSampleWins(t *testing.T) {
	e := fresh(1000, time.Second)
	e.Sample(time.Second, time.Second+10*time.Millisecond, 9_000_000)
	if e != fresh(1000, time.Second) {
		t.Errorf("a sample with an error of 5 ms moved one of 1 ms: %+v", e)
	}
	e.Sample(time.Second, time.Second+200*time.Microsecond, 1_000_100)
	if e.Err > 103 {
		t.Errorf("error %d after a sample of 100 µs", e.Err)
	}
}

func TestEstimate_AnOldSampleLosesToAWorseOneInTheEnd(t *testing.T) {
	e := fresh(100, 0)
	if got := e.Spread(time.Second); got != 100+500 {
		t.Fatalf("spread %d µs after 1 s, want 600: 500 ppm of drift", got)
	}
	e.Sample(10*time.Second, 10*time.Second+8*time.Millisecond, 10_004_000)
	if e.Taken == 0 {
		t.Error("a sample better than the spread was ignored")
	}
}

func TestEstimate_FollowsWhatDoesNotDeviateAtOnce(t *testing.T) {
	e := fresh(20, time.Second)
	e.Sample(time.Second, time.Second+2*time.Microsecond, 1_000_002+14_000) // the master is 14 ms ahead
	if e.Offset != 14_000 || e.Err != 2 {
		t.Errorf("offset %d and error %d after a look at a clock that is 14000 ahead, want that and 2", e.Offset, e.Err)
	}
}

func TestEstimate_TheTruthStaysWithinTheErrorWhateverTheRoundTrips(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		truth := r.Int64N(2_000_000) - 1_000_000
		drift := r.Int64N(801) - 400 // ppm, within what the spread allows
		at := func(now time.Duration) int64 { return Micros(now) + truth + Micros(now)*drift/1_000_000 }
		var e Estimate
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(r.Int64N(int64(50 * time.Millisecond)))
			there := time.Duration(r.Int64N(int64(5 * time.Millisecond)))
			back := time.Duration(r.Int64N(int64(5 * time.Millisecond)))
			e.Sample(now, now+there+back, at(now+there))
			now += there + back
			if off := Abs(e.At(now) - at(now)); off > e.Spread(now)+4 {
				t.Fatalf("seed %d: %d µs off, claims %d", seed, off, e.Spread(now))
			}
			if off := e.Deviation(now, now+there, at(now+there/2)); off != 0 {
				t.Fatalf("seed %d: a healthy master deviates by %d µs", seed, off)
			}
		}
	}
}

func TestEstimate_DeviationBeginsBehindTheStepAndTheError(t *testing.T) {
	const err = 300
	e := fresh(err, time.Second)
	sent, received := time.Second, time.Second+40*time.Millisecond // our daemon was busy, or the link is long
	wide := e.Spread(received) + Micros(MinStep)
	for _, c := range []struct {
		name   string
		master int64
		want   int64
	}{
		{"read when it was sent", Micros(sent), 0},
		{"read when it was received", Micros(received), 0},
		{"ahead by just what is allowed", Micros(received) + wide, 0},
		{"ahead by one more", Micros(received) + wide + 1, wide + 1},
		{"behind by just what is allowed", Micros(sent) - wide, 0},
		{"behind by one more", Micros(sent) - wide - 1, -wide - 1},
	} {
		if got := e.Deviation(sent, received, c.master); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestHybrid_EveryNumberIsAboveAllGivenAndAllSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Hybrid
	var highest int64
	for range 10_000 {
		switch r.IntN(3) {
		case 0:
			seen := r.Int64N(1 << 40)
			h.Observe(seen)
			highest = max(highest, seen)
		default:
			median := r.Int64N(1 << 40)
			got := h.Tick(median)
			if got <= highest || got < median {
				t.Fatalf("%d after %d with the clock at %d", got, highest, median)
			}
			if got != max(highest+1, median) {
				t.Fatalf("%d, want the least that is allowed, %d", got, max(highest+1, median))
			}
			highest = got
		}
	}
}
