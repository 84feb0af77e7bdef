// Package track reports when what a client has seen of a key is no longer so: for clients that
// keep what they read (CLIENT TRACKING). track.go has the clients' side, entry.go the watch of
// one key.
package track
