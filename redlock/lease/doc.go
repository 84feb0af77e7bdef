// Package lease acquires, extends and releases locks by a quorum of masters, in all modes. What goes
// up, a key that is free and a change of a lease, goes through two hooks.
//
// Files in reading order:
//   - request.go, grant.go, leases.go, lease.go: requests, outcomes and the Leases;
//   - acquire.go, mode.go, vote.go, fail.go, undo.go: the ballot of a lock;
//   - release.go, extend.go, records.go: the end of a lease and its extension;
//   - tokenqueue.go, hotkey.go: limits of what is in flight for a token or a key;
//   - new.go, plain.go, fresh.go, upgrade.go, shared.go, permits.go, permitslots.go, multi.go: which mode a request has, and the
//     modes; queuecheck.go, sharedfence.go, usedfences.go: what several of them need;
//   - notes.go: notes about holders, for people;
//   - script.go, scriptrun.go, scriptlock.go, scriptextend.go, scriptwrite.go, view.go, shorten.go,
//     forward.go: clients that expect one Redis.
package lease
