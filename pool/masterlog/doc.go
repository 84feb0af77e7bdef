// Package masterlog decides what the log has about a master: that it stops voting and votes again,
// and which errors it returned. What would fill the log is folded.
//
// Files in reading order:
//   - votes.go: absences, quarantines and votes;
//   - errors.go: error replies.
package masterlog
