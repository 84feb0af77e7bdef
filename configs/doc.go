// Package configs reads and checks the settings of redlockd: the command line, the
// environment and a TOML file become a Config, or errors that name every invalid setting.
//
// Files in reading order:
//
//	config.go       Config
//	options.go      the table of all options, with defaults and help; option.go: one option
//	load.go         Load: the command line over the environment over the file; toml.go
//	masters.go      the list of masters; address.go: addresses
//	groups.go       several groups of masters
//	users.go        the users file
//	checks.go       checks of single options
//	errors.go       FieldError, nearest names, hidden passwords
package configs
