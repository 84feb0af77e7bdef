// Package groups makes one of several groups of masters: each name belongs to the group that has
// its slot, and everything about it is decided there, as if there were no other group.
//
// Nothing here is about safety but three things. The slots of a group are part of its configuration
// on its masters, so a daemon with another map gets no vote from them. The map of this daemon (map.go)
// changes before a master can vote under the next configuration, and a ballot whose key has left its
// group grants nothing (engine.Ownership). And a lock of keys of several groups (several.go) is a lock
// in each of them, with one fence. What waits while slots move is in routedwait.go.
package groups
