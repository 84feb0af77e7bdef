// Package arg describes and reads the arguments of commands.
//
// Reading order:
//   - argument.go: how a command is written;
//   - args.go: the reader of its words, within their bounds.
package arg
