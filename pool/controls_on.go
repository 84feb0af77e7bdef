//go:build controls

package pool

import "os"

// broken is the one rule that this process runs without. Its variable has not the
// prefix of options, so that a daemon of such a build takes it.
var broken = Rule(os.Getenv("BROKEN_RULE"))

// Broken tells whether a safety rule is switched off.
func Broken(r Rule) bool { return r == broken }
