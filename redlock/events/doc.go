// Package events delivers the events of locks to listeners, in this daemon and in others.
//
// Files in reading order:
//   - events.go: events, listeners and delivery;
//   - transport.go: batches of events between daemons;
//   - expirywatch.go: grants that expire.
package events
