// Package arg describes and reads the arguments of commands.
//
// Reading order:
//   - argument.go: how a command is written;
//   - args.go: the reader of its words;
//   - limits.go: names, tokens, times and numbers within their bounds.
package arg
