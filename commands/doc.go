// Package commands is the table of commands: it reads a client's words, runs the
// operation on a quorum of masters and forms the reply.
//
// Reading order:
//   - call.go, reply.go, deps.go: what a handler gets, returns and uses;
//   - table.go, command.go, dispatch.go: the rows and how a call finds its row;
//   - args.go, limits.go, bounds.go: how words are read and bounded;
//   - dlock.go, acquire.go, dunlock.go, dextend.go: a lock from request to reply;
//     heldlock.go, onclose.go and lastacquired.go for locks of a connection;
//   - dnextid.go, dids.go, dwork.go, dworkdone.go: ids and work;
//   - dinfo.go, dmasters.go, info.go: what operators see;
//   - auth.go: what a client may run; package access has users and quotas;
//   - channels.go, subscribe.go: events of locks;
//   - set.go, eval.go, pendingacquire.go: clients that use the quorum as one Redis.
package commands
