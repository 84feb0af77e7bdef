// Package rediscompat serves clients that use the quorum as one Redis: the commands and
// scripts by which they take, read and release a lock, as operations on the masters.
//
// Reading order:
//   - rows.go: the commands;
//   - leasepolicy.go: which leases they get;
//   - set.go, msetex.go, pendingacquire.go, get.go, del.go, expire.go, comparison.go, multikey.go, changes.go:
//     a lock by commands; nextid.go: ids for pottery;
//   - exec.go, blpop.go: transactions and waits;
//   - fences.go: fences of locks whose replies cannot carry them;
//   - evaluation.go, translate.go, redisson.go, eval.go, scriptcache.go, prober.go:
//     scripts, which package dropin recognises; answers.go: their answers;
//   - compat.go: --compat-test.
package rediscompat
