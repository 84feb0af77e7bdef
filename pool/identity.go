// Identity: the text on a master that names its incarnation and the settings of its daemons.

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/clock"
)

// formatVersion changes whenever daemons of two versions must not share
// masters, because scripts or keys differ.
const formatVersion = "v1"

// Incarnation is the memory for which a connection was admitted: while the zset
// redlockd:seal holds this identity as its member, the same process with the same memory
// executed every command on the connection.
type Incarnation struct {
	Identity string // "run_id:evicted incarnation base durable fingerprint", compared byte for byte
	RunID    string
	Evicted  string // evicted_keys of the process when the identity was written
	ID       string // random; survives a restart only if the memory did
	Base     int64  // µs of the master's clock at which this memory began; 0 = bootstrapped
	Durable  bool   // every write of this incarnation was on disk before it was answered
}

func parseIdentity(identity string) (*Incarnation, error) {
	f := strings.SplitN(identity, " ", 5)
	if len(f) != 5 {
		return nil, fmt.Errorf("identity %q is not of the form run_id:evicted incarnation base durable fingerprint", identity)
	}
	base, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("identity %q: base %q is not a number", identity, f[2])
	}
	run, evicted, _ := strings.Cut(f[0], ":")
	return &Incarnation{Identity: identity, RunID: run, Evicted: evicted, ID: f[1], Base: base, Durable: f[3] == "1"}, nil
}

// mayVote reports whether a memory that began at Base is old enough when the
// master's clock shows us: until then it may have forgotten a lease that still runs.
func (l *Incarnation) mayVote(us int64, age time.Duration) bool {
	return us >= l.Base+clock.Micros(age)
}

// age is how long the memory has been unbroken when the master's clock shows us.
func (l *Incarnation) age(us int64) time.Duration {
	if l.Base == 0 {
		return math.MaxInt64
	}
	return time.Duration(us-l.Base) * time.Microsecond
}

// fingerprint names everything on which two daemons on the same masters must agree.
// It is readable, so that a refusal can name the difference.
// It is the same for all masters; see forMaster.
func fingerprint(o *Options, db int) string {
	names := make([]string, 0, len(o.Masters))
	for _, m := range o.Masters {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return strings.Join([]string{
		"format=" + formatVersion,
		"group=" + o.Group,
		"db=" + strconv.Itoa(db),
		"max-ttl=" + strconv.FormatInt(o.MaxTTL.Milliseconds(), 10),
		"max-keep=" + strconv.FormatInt(o.MaxKeep.Milliseconds(), 10),
		"masters=" + strconv.Itoa(len(names)) + "-" + hex.EncodeToString(sum[:8]),
	}, "/")
}

// forMaster binds it to one master: a copy of another master's memory, as a
// replica or a restored file has it, never votes in its place.
func forMaster(fingerprint, name string) string {
	if Broken(RuleDistinct) { // it would refuse one server under two names, too
		return fingerprint
	}
	return fingerprint + "/master=" + url.PathEscape(name)
}

// difference lists where two fingerprints disagree, for people.
func difference(ours, theirs string) string {
	a, b := strings.Split(ours, "/"), strings.Split(theirs, "/")
	if len(a) != len(b) {
		return fmt.Sprintf("another version of redlockd left %q", theirs)
	}
	var parts []string
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		name, mine, _ := strings.Cut(a[i], "=")
		_, other, _ := strings.Cut(b[i], "=")
		if name == "masters" {
			parts = append(parts, "the list of masters differs (names must be the same on every daemon)")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s is %s here and %s there", name, mine, other))
	}
	return strings.Join(parts, ", ")
}
