//go:build !controls

package pool

// Broken reports whether a safety rule is switched off, so that the negative
// controls can show that the tests detect it. It is constantly false, and removed
// by the compiler, in every build without the tag "controls".
func Broken(Rule) bool { return false }
