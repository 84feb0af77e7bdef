// Package redlock runs the quorum algorithms for locks, ids and work over a pool of masters.
// It contains no socket and no protocol: requests are values, outcomes are calls. Package quorum
// has its arithmetic, package engine puts one question to all masters, package scripts has what runs
// on them, packages ids and work have DNEXTID and DWORK, package events what listeners receive.
//
// Files in reading order:
//   - api.go, errors.go, redlock.go: the Locker; request.go, grant.go: requests and outcomes;
//   - locks.go, acquire.go, lockmode.go, fail.go, undo.go: locks, and the ballot of one;
//   - release.go, extend.go, repair.go, leases.go: the end of a lease and its extension;
//   - tokenqueue.go, hotkey.go: limits of what is in flight for a token or a key;
//   - upgrade.go, shared.go, permits.go, otherlimit.go, multi.go, fairmode.go, sharedfence.go: the other modes;
//   - waiters.go, waitqueue.go, keywatch.go, fair.go, deadlock.go, waitlist.go: waits;
//   - hold.go, renewals.go, holdwatch.go, holdlog.go: leases that are renewed;
//   - readlock.go, lockview.go, listlocks.go, meta.go, force.go: inspection and force;
//   - counters.go: counts;
//   - script.go, scriptballot.go, scriptrun.go, scriptlock.go, scriptextend.go, scriptdelete.go,
//     scriptwait.go, scriptwrite.go, view.go, shorten.go, forward.go: clients that expect one Redis.
package redlock
