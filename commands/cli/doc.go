// Package cli runs redlockd's own command line: it chooses the job, reads its
// settings and ends the process with an exit code.
//
// Reading order:
//   - app.go: the program, its command line taken apart, and the exit codes; help.go;
//   - command.go: the words of the command line, and the table of subcommands;
//   - run.go: one job for each word;
//   - banner.go, hashpassword.go, version.go, completion.go, man.go, slots.go:
//     the jobs and their output;
//   - connection.go, resp.go: options and connection of those that connect to a daemon;
//   - lock.go, guard.go, lease.go: redlockd lock, which runs a command while it holds a
//     lock;
//   - top.go, monitor.go, trips.go, fields.go, screen.go: redlockd top, which shows a daemon on a
//     terminal.
package cli
