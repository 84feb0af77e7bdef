// Settings: what a fingerprint on a master shows about its group.

package setup

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/admission"
)

// settings are the parts of a fingerprint, without database, epoch and master.
type settings map[string]string

func parseSettings(identity string) settings {
	s := settings{}
	for part := range strings.SplitSeq(admission.FingerprintOf(identity), "/") {
		if name, value, found := strings.Cut(part, "="); found && name != "db" && name != "master" && name != "epoch" {
			s[name] = value
		}
	}
	return s
}

func (s settings) duration(name string) (time.Duration, error) {
	ms, err := strconv.ParseInt(s[name], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reconfigure: the masters carry an identity whose %s is %q: stop all daemons, delete redlockd:seal on every master in every database, start with the new settings and wait for the longest lease", name, s[name])
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// number returns the number of masters that the list had.
func (s settings) number() int {
	n, _, _ := strings.Cut(s["masters"], "-")
	count, _ := strconv.Atoi(n) // the callers refuse 0
	return count
}

func (s settings) text() string {
	return fmt.Sprintf("format %s, group %s, max-ttl %s ms, max-keep %s ms, masters %s, slots %s", s["format"], s["group"], s["max-ttl"], s["max-keep"], s["masters"], orAll(s["slots"]))
}

// orAll shows the slots of a group.
func orAll(slots string) string { return cmp.Or(slots, "all") }
