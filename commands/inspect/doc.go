// Package inspect serves the commands by which operators see locks (dinfo.go, dlocks.go),
// waiters (dwaiters.go) and masters (dmasters.go), and release a lock of another
// (DFORCE, in dinfo.go). The commands are in rows.go.
package inspect
