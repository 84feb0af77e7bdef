// Package quorum is the arithmetic of a quorum: it counts votes, chooses fences and computes the
// times of a lease. It imports nothing of this module and has no clock, network or goroutine.
//
// Files in reading order:
//   - tally.go: what the votes so far decide;
//   - fence.go: the interval rule, and the fence of a ballot;
//   - validity.go: how long a lease may be relied on, and when its copies end.
package quorum
