// Package setup has the checks that operators run before they start a group of masters.
// The daemon calls it for subcommands only, never while it serves clients.
//
// Files in reading order:
//   - check.go: whether servers are fit to be masters;
//   - acl.go: the commands that the daemon's user needs on a master.
package setup
