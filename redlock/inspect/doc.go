// Package inspect reads what the masters together report about locks, lists locks, and releases
// them regardless of their holders.
//
// Files in reading order:
//   - readlock.go, aggregate.go: one lock;
//   - walk.go: the locks of a database;
//   - force.go: the release of every holder.
package inspect
