// Package pool sends operations to the masters, keeps their order and verifies every
// answer; it contains no lock. Each master has one lane per database: a FIFO queue, drained
// into one write per flush on one connection. With distant masters several flushes are under
// way on it. At the end of a flush three plain commands
// verify that the master is still the process, with the memory and the clock, that was
// admitted; only then do its answers count.
//
// Files in reading order:
//   - options.go, pool.go, slotmap.go, group.go: the masters, and their lanes for each database;
//   - operation.go, batch.go, queue.go, lane.go, connection.go, window.go, flush.go, exchange.go, bulk.go: from an operation to a write;
//   - verify.go, clockstep.go, masterclock.go, gain.go, readings.go: the checks of each flush;
//   - fingerprint.go, dial.go, handshake.go, epoch.go, evidence.go, records.go: from a dial to a vote, with package admission;
//   - pendingrelease.go, reconnect.go, drain.go, follow.go, leftbehind.go, masterlist.go: masters that are away, or change;
//   - reasons.go, report.go, status.go, carried.go, counters.go, absence.go, votes.go, histogram.go: reports; package masterlog: what the log has;
//   - tasks.go: goroutines; package wire: connections; package clock: time;
//   - inprocess.go: masters in this process;
//   - names.go: names of packages below; package notify: tracked keys, events of other daemons.
package pool
