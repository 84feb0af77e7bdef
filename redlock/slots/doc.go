// Package slots maps names to the 16384 slots of Redis Cluster, and slots to groups of
// masters. A slot is all that decides which group a name belongs to: of a key, a counter, a
// piece of work, a FAIR queue. The database does not enter.
package slots
