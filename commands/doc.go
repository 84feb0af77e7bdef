// Package commands is the table of commands: it finds the row of a call, checks what
// its client may do, and forms replies. The packages below it serve the rows.
//
// Reading order:
//   - call.go, reply.go, deps.go: what a handler gets, returns and uses;
//   - command.go, index.go, dispatch.go: the rows and how a call finds its row;
//   - permissions.go: what a client may run; package access has users and quotas; force.go, audit.go: what is done to
//     locks of others; maxhold.go: for how long a lock is held;
//   - clientstate.go, lastacquired.go, otheruse.go, onclose.go, subscriptions.go,
//     transaction.go, alone.go, tracking.go, trackedcall.go: what the daemon keeps for a connection;
//   - errors.go, pendinggrant.go: error replies of operations on the masters, and the
//     deferred reply of locks;
//   - requests.go, figures.go: what is counted, for INFO and the metrics; levels.go: a reentrant lock with a count;
//   - command_docs.go, keyspec.go, commandrow.go: COMMAND and HELP from the rows.
//
// Package arg describes and reads arguments. The commands are in lock, counter, work,
// inspect, rediscompat (clients that use the quorum as one Redis) and conn (the
// connection and the server). Each exports Rows.
package commands
