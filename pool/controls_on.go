//go:build controls

package pool

import "os"

// broken is the one rule that this test process runs without.
var broken = Rule(os.Getenv("REDLOCKD_BROKEN_RULE"))

// Broken tells whether a safety rule is switched off.
func Broken(r Rule) bool { return r == broken }
