// Package conn serves the commands about a connection and the daemon, as Redis has them.
//
// Reading order:
//   - rows.go: the commands;
//   - connection.go, hello.go, client.go, clients.go: the connection;
//   - redisidentity.go, info.go: which server this is, and its statistics; cluster.go: the daemons as nodes of a cluster;
//   - subscribe.go, channels.go, smallset.go, librarychannels.go: events of locks; tracking.go: client-side caching.
package conn
