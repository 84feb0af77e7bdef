// Package events delivers the events of locks to listeners, in this daemon and in others.
//
// Files in reading order:
//   - event.go: an event, and its text;
//   - transport.go: batches of events between daemons;
//   - expirywatch.go: grants that expire;
//   - dbevents.go, events.go: listeners and delivery, of one database and of all.
package events
