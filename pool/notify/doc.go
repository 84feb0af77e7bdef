// Package notify receives hints from the masters: that a key changed, and messages of other
// daemons. No decision depends on them. It has connections of its own, beside the lanes.
//
// Files in reading order:
//   - watch.go, tracker.go: keys whose changes the masters announce;
//   - events.go, subscriber.go: messages, and which daemons listen to them.
package notify
