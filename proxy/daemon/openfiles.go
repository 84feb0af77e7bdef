package daemon

// How many clients the limit of open files allows.

import (
	"math"
	"syscall"

	"redlockd/configs"
)

// filesBeside are open files beside those of clients and masters: listeners, the admin endpoint
// with its 256 connections, files that are read again, the runtime's own.
const filesBeside = 300

// openFiles is how many files this process may have open. Go has raised the soft limit to the
// hard one.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}

// maxClients is --max-clients, or fewer where the process may not open so many files: clients
// must not take those over which the daemon reaches its masters again.
func maxClients(config configs.Config, files uint64) int {
	others := uint64(filesBeside)
	for _, group := range config.Each() {
		others += uint64(2 * len(group.Masters) * config.Databases) // of each database a lane, and one for events
	}
	clients := files / 2 // if there are few
	if files > 2*others {
		clients = files - others
	}
	return int(max(1, min(uint64(config.MaxClients), clients)))
}
