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
	Overdue     N // leases that were held for their longest time
}

// fields are those of a struct of counts.
func fields[N any](of any) (all []*N) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		all = append(all, v.Field(i).Addr().Interface().(*N))
	}
	return all
}

// Load takes a snapshot of counts. Both are pointers to structs with the same fields: of atomic.Int64
// and int64. AddCounts adds one snapshot to another.
func Load(counts, snapshot any) {
	from := fields[atomic.Int64](counts)
	for i, n := range fields[int64](snapshot) {
		*n = from[i].Load()
	}
}

func AddCounts(sum, more any) {
	from := fields[int64](more)
	for i, n := range fields[int64](sum) {
		*n += *from[i]
	}
}
