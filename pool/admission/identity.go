// Identity: the text on a master that names its incarnation and the settings of its daemons.

package admission

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/clock"
)

// Incarnation is the memory for which a connection was admitted: while the zset
// redlockd:seal holds this identity as its member, the same process with the same memory
// executed every command on the connection.
type Incarnation struct {
	Identity string // "run_id:evicted incarnation base durable fingerprint", compared byte for byte
	RunID    string
	Evicted  string // evicted_keys of the process when the identity was written
	ID       string // random; survives a restart only if the memory did
	Base     int64  // µs of the master's clock at which this memory began; 0 = bootstrapped
	// Works and Counters are what the memory has from before it began, because a change of the masters
	// or the bootstrap has seen to it: then a record, or a counter, that is not there never was.
	Works, Counters bool
	Durable         bool // every write of this incarnation was on disk before it was answered

	Fingerprint string // of the settings, for this master
}

// ParseIdentity reads the text.
func ParseIdentity(identity string) (*Incarnation, error) {
	f := strings.SplitN(identity, " ", 5)
	if len(f) != 5 {
		return nil, fmt.Errorf("identity %q is not of the form run_id:evicted incarnation base durable fingerprint", identity)
	}
	base, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("identity %q: base %q is not a number", identity, f[2])
	}
	run, evicted, _ := strings.Cut(f[0], ":")
	return &Incarnation{
		Identity: identity, RunID: run, Evicted: evicted, ID: f[1], Base: base, Durable: f[3] == "1", Fingerprint: f[4],
		Works: base == 0 || strings.HasPrefix(f[2], KnowsWorks), Counters: base == 0 || strings.HasPrefix(f[2], KnowsAll),
	}, nil
}

// KnowsWorks and KnowsAll begin the base of a memory that has all records of work, and also all
// counters: zeros in front of a number change nothing where it counts as one.
const (
	KnowsWorks = "0"
	KnowsAll   = "00"
)

// MayVote reports whether a memory that began at Base is old enough when the
// master's clock shows us: until then it may have forgotten a lease that still runs.
func (i *Incarnation) MayVote(us int64, age time.Duration) bool {
	return us >= i.Base+clock.Micros(age)
}

// OlderText tells people that a memory may lack changes.
const OlderText = "has come back with what may be an older file"

// MayBeOlder reports whether what stands at a seal may be older than the last change that its master
// has carried: it is neither of the process with this run id nor durable. processes are those that
// the master stores beside it, see admit.lua.
func MayBeOlder(seal, processes, run string, durable bool) bool {
	if i, err := ParseIdentity(seal); err == nil {
		return i.RunID != run && !(i.Durable && durable)
	}
	first, _, _ := strings.Cut(processes, "=")
	return seal != "" && first != run
}

// Age returns the time for which the memory has been unbroken when the master's clock shows us.
func (i *Incarnation) Age(us int64) time.Duration {
	if i.Base == 0 {
		return math.MaxInt64
	}
	return time.Duration(us-i.Base) * time.Microsecond
}

// WorkAge returns the time for which it has had all records of work.
func (i *Incarnation) WorkAge(us int64) time.Duration {
	if i.Works {
		return math.MaxInt64
	}
	return i.Age(us)
}

// Difference lists where two fingerprints disagree, for people.
func Difference(ours, theirs string) string {
	if !strings.Contains(ours, "/epoch=") {
		theirs, _ = SplitMark(theirs)
	}
	a, b := partsOf(ours), partsOf(theirs)
	if len(a) != len(b) {
		return fmt.Sprintf("another version of redlockd left %q: redlockd reconfigure puts this one in force, see the runbook", theirs)
	}
	var parts []string
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		name, mine, _ := strings.Cut(a[i], "=")
		_, other, _ := strings.Cut(b[i], "=")
		if name == "epoch" {
			parts = append(parts, epochs(mine, other))
			continue
		}
		if name == "masters" {
			parts = append(parts, "the list of masters or key prefixes differs (names must be the same on every daemon)")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s is %s here and %s there", name, mine, other))
	}
	return strings.Join(parts, ", ")
}

// partsOf are the parts of a fingerprint, with slots=all where it is left out.
func partsOf(fingerprint string) []string {
	parts := strings.Split(fingerprint, "/")
	if i := slices.IndexFunc(parts, func(part string) bool { return strings.HasPrefix(part, "masters=") }) + 1; i > 0 && !strings.Contains(fingerprint, "/slots=") {
		parts = slices.Insert(parts, i, "slots=all")
	}
	return parts
}

// epochs compares the marks of two configurations.
func epochs(ours, theirs string) string {
	a, b := EpochOf(ours), EpochOf(theirs)
	switch {
	case a == 0:
		return fmt.Sprintf("this daemon has met no quorum with its settings, and the master has epoch %d", b)
	case a == b:
		return fmt.Sprintf("two changes have both made epoch %d: redlockd reconfigure finishes the one that a majority has", a)
	case a < b:
		return fmt.Sprintf("left behind: this daemon has epoch %d, and the master has %d", a, b)
	}
	return fmt.Sprintf("the master was left behind: it has epoch %d, and this daemon has %d", b, a)
}
