package engine

import (
	"reflect"
	"sync/atomic"
)

// Counts are the counts since the start of the daemon: N is atomic.Int64 where they count, and int64 in
// a snapshot.
type Counts[N any] struct {
	Acquired    N // grants
	Refused     N // acquires answered "no"
	NoQuorum    N // operations that could not be decided
	Expired     N // quorums that came too late
	Split       N // ballots in which no contender had a quorum
	Released    N
	Extended    N
	GivenBack   N // grants whose client had gone
	Undone      N // copies given back on single masters
	LateGrants  N // votes that came after the decision and were given back
	SecondSeals N // grants that needed one more seal for their fence
	ThirdSeals  N // grants that needed a third seal, because a voter failed in between
	Repaired    N // copies re-created on masters that had lost an extended lease
	IDs         N // ids given
	IDRounds    N // proposals to the masters for them
	WorkStarted N // attempts granted
	WorkDone    N // pieces of work marked done
	HoldsLost   N // leases that could not be renewed, or were lost to others
}

func (c *Counts[N]) fields() (all []*N) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		all = append(all, v.Field(i).Addr().Interface().(*N))
	}
	return all
}

// Snapshot are the counts now.
func Snapshot(c *Counts[atomic.Int64]) (s Counts[int64]) {
	from := c.fields()
	for i, n := range s.fields() {
		*n = from[i].Load()
	}
	return s
}

// AddCounts adds one snapshot to another.
func AddCounts(sum, more *Counts[int64]) {
	from := more.fields()
	for i, n := range sum.fields() {
		*n += *from[i]
	}
}
