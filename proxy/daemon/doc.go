// Package daemon builds redlockd from its parts, serves until it is stopped,
// and takes the parts down in reverse order.
//
// Files in reading order:
//
//	daemon.go       the subcommands, and the order of construction and shutdown
//	options.go      what each part receives of the configuration
//	groups.go       the groups of masters, usually one
//	adminserver.go  the admin endpoint and what it shows of the other parts
//	reload.go       what SIGHUP reads again
//	gcpercent.go    how often Go collects garbage; memorylimit.go
//	logwriter.go    the log, which must not stop the daemon
//
// Its tests drive the whole program: as a function where that suffices, and as a
// process where signals and exit codes matter.
package daemon
