// Package lease acquires, extends and releases locks by a quorum of masters, in all modes. What goes
// up, a key that is free and a change of a lease, goes through two hooks.
//
// Files in reading order:
//   - request.go, grant.go, leases.go, lease.go: requests, outcomes and the Leases; kind.go, hash.go: what they share;
//   - acquire.go, mode.go, vote.go, late.go, fail.go, undo.go, copies.go: the ballot of a lock;
//   - release.go, releasewords.go, extend.go, records.go: the end of a lease and its extension;
//   - tokenqueue.go, hotkey.go: limits of what is in flight for a token or a key;
//   - new.go, exclusive.go, plain.go, fresh.go, upgrade.go, shared.go, permits.go, permitslots.go, multi.go, joint.go: the
//     modes; modes.go, queuecheck.go, sharedfence.go, usedfences.go, holdlimit.go: what several of them need;
//   - observer.go, listeners.go, notes.go, shortleases.go: what follows leases: events, notes about holders, the log;
//   - swap.go, retime.go, write.go, view.go, observe.go, shorten.go, refusals.go, forward.go: clients that expect one Redis.
package lease
