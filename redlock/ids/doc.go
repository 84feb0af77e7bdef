// Package ids issues ids (DNEXTID): every id is greater than every id whose reply was sent before
// the request for it arrived, over all daemons.
//
// Files in reading order:
//   - counters.go, nextid.go: counters that share rounds of proposals, and the rounds;
//   - read.go, delete.go: what operators do with a counter;
//   - errors.go.
package ids
