// Package configs reads and checks the settings of redlockd: the command line, the
// environment and a TOML file become a Config, or errors that name every invalid setting.
//
// Files in reading order:
//
//	config.go     Config and its defaults
//	load.go       Load: merges flags.go, environ.go and file.go, the stronger over the weaker
//	option.go     one option; options.go: all options, in the order of --help
//	decode.go     values; endpoint.go, listen.go: addresses; nearest.go: misspelt names
//	masters.go    the list of masters; master.go, address.go: one entry
//	access.go     passwords and TLS; users.go: the users file; admin.go, otlp.go, compat.go
//	validate.go   checks; errors.go: FieldError; warnings.go: valid but unwise settings
//	help.go       --help; settings.go: CONFIG GET; redact.go: hides passwords
package configs
