// Package redlock is the locks, ids and work of a daemon over a pool of masters. It contains no
// socket and no protocol: requests are values, outcomes are calls.
//
// Package quorum has the arithmetic, package engine puts one question to all masters, package
// scripts has what runs on them. Package lease acquires, extends and releases locks, package
// inspect shows them, package wait keeps requests that wait, package renew renews leases. Packages
// ids and work have DNEXTID and DWORK, package events what listeners receive.
//
// Files in reading order: api.go, errors.go, redlock.go.
package redlock
