// Package wire is one connection to one master: it sends commands and returns decoded
// replies. A malformed reply closes the connection and never reaches the client library.
//
// Files in reading order:
//   - master.go: where a master is;
//   - reply.go: a decoded reply, and what is read out of one;
//   - link.go: the connection of a lane, or one on which a master announces changes of keys, or
//     delivers messages;
//   - guard.go: the state machine that rejects malformed replies.
package wire
