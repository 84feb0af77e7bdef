// Package contract holds tests that compare everything users depend on with golden
// files: commands, replies, errors, figures, metrics, the admin endpoint, options,
// help and log messages. `make golden` writes the files anew; a change of one is a
// change of the contract and belongs in CHANGELOG.md.
//
// Files in reading order:
//
//	golden_test.go    compares a text with its golden file
//	daemon_test.go    starts the test binary as a daemon
//	reply_test.go     reads a RESP reply and renders it as text
//	volatile_test.go  replaces values that differ between runs
//	script_test.go    plays a transcript; its syntax
//	replies_test.go   all transcripts; none of the commands is missing
//	http_test.go      requests of a transcript to the admin endpoint
//	usage_test.go     help and errors of the command line
//	source_test.go    log messages, error codes and other texts in the source code
package contract
