package commands_test

import (
	"crypto/sha1"
	"encoding/hex"
)

// Limits of the packages that serve the commands.
const (
	maxListedCounters = 1000
	countersAtOnce    = 16
	maxShownWaiters   = 1000
	maxScripts        = 1024
	maxScriptBytes    = 16 << 10
	maxLastAcquired   = 1024
	unmeasured        = "multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 obl=0 oll=0 omem=0 tot-mem=0 events=r"
)

// shaOf is the SHA1 of a script.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
