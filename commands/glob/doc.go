// Package glob matches names against patterns (glob.go): key patterns of users and of
// DLOCKS, and channel patterns of PSUBSCRIBE.
package glob
