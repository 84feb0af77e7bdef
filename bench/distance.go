// Masters that are not on this machine: a relay in front of each delivers every byte later. The
// relays run in this process, so a part of what a busy machine adds to a round trip is theirs.

package main

import (
	"context"
	"fmt"
	"time"

	"redlockd/pool/faulty"
)

// mixedDistances are the round trips to five masters of which two are on another continent.
var mixedDistances = []time.Duration{time.Millisecond, time.Millisecond, 2 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond}

// roundTripsP50 and roundTripsP99 are the acquire's, in round trips to the quorum's last master.
const (
	roundTripsP50 figure = "p50 round trips"
	roundTripsP99 figure = "p99 round trips"
)

// distance is a round trip to all masters, or to each.
type distance struct {
	name  string
	trips []time.Duration
}

func distances() []distance {
	var all []distance
	for _, trip := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond} {
		all = append(all, distance{trip.String(), []time.Duration{trip}})
	}
	return append(all, distance{"1 to 60ms", mixedDistances})
}

func (d distance) title(who string, n int) string {
	return fmt.Sprintf("masters %s away, %s, %s", d.name, who, callers(n))
}

// quorums is the round trip to the third nearest of five masters.
func (d distance) quorums() time.Duration { return d.trips[len(d.trips)/2] }

func distanceScenarios() []scenario {
	var all []scenario
	for _, d := range distances() {
		for _, n := range []int{1, 8, 64, 256} {
			run := func(open opener) runner {
				return onOwnTestbed(testbedOptions{trips: d.trips}, inRoundTrips(d.quorums(), pairs(n, open)))
			}
			peer := d.title("redsync", n)
			all = append(all,
				scenario{name: peer, page: pageDistance, run: run(openRedsync)},
				scenario{name: d.title("daemon", n), page: pageDistance, peer: peer, run: run(openMultiplexed)})
		}
	}
	return all
}

// inRoundTrips adds the latencies in round trips.
func inRoundTrips(trip time.Duration, run runner) runner {
	return func(ctx context.Context, tb *testbed, span time.Duration) (figures, error) {
		f, err := run(ctx, tb, span)
		if err != nil {
			return nil, err
		}
		us := float64(trip.Microseconds())
		f[roundTripsP50], f[roundTripsP99] = f[acquireP50]/us, f[acquireP99]/us
		return f, nil
	}
}

// moveAway puts a relay in front of each master. trips are for the masters in turn.
func (tb *testbed) moveAway(trips []time.Duration) {
	for i, m := range tb.masters {
		r := faulty.NewRelay(m.address)
		r.Delay(trips[i%len(trips)] / 2)
		tb.relays = append(tb.relays, r)
	}
}
