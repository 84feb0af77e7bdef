// Package inspect reads what the masters together report about locks, lists locks, and releases
// them regardless of their holders.
//
// Files in reading order:
//   - lockview.go: one lock, by what each master shows;
//   - readlock.go: one lock, from every master;
//   - walk.go, reported.go: the locks of a database;
//   - identify.go: which client holds a lock;
//   - force.go: the release of every holder.
package inspect
