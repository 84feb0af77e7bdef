// Package groups makes one of several groups of masters: each name belongs to the group that has
// its slot, and everything about it is decided there, as if there were no other group.
//
// Nothing here is about safety but two things. The slots of a group are part of its configuration
// on its masters, so a daemon with another map gets no vote from them. And a lock of keys of
// several groups (several.go) is a lock in each of them, with one fence.
package groups
