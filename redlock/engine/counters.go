package engine

import "sync/atomic"

// Counts are the counts since the start, see redlock.Counters.
type Counts struct {
	Acquired, Refused, NoQuorum, Expired, Split   atomic.Int64
	Released, Extended, GivenBack, Undone         atomic.Int64
	LateGrants, SecondSeals, ThirdSeals, Repaired atomic.Int64
	IDs, IDRounds, WorkStarted, WorkDone          atomic.Int64
	HoldsLost                                     atomic.Int64
}
