// Package glob matches names against patterns: key patterns of users and of DLOCKS
// (glob.go), and channel patterns of PSUBSCRIBE (channelpattern.go).
package glob
