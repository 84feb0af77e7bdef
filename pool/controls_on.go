//go:build controls

package pool

import "os"

// broken is the one rule that this process runs without. Its variable does not have the
// prefix of options, so that a daemon of such a build accepts it.
var broken = Rule(os.Getenv("BROKEN_RULE"))

// Broken reports whether a safety rule is switched off.
func Broken(r Rule) bool { return r == broken }
