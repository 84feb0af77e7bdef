// Package renew implements HOLD: leases that the daemon renews until they are released, ended or
// lost. It receives the changes of leases through a hook of package lease.
//
// Files in reading order:
//   - hold.go: a hold, its owner's calls and the changes of its lease;
//   - renewals.go: when a hold is renewed, and what follows;
//   - holdwatch.go: the masters announce changes of its keys;
//   - wanted.go, wantedlist.go: requests to let go, of clients of this daemon and of others;
//   - holdlog.go: the log of lost holds.
package renew
