// Options of a pool: its masters, limits and timeouts.

package pool

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// Options of a Pool. Zero means the default named at the field.
type Options struct {
	Masters  []Master // 3 to 9 of them; an even number is a step of a change only
	Embedded int      // instead: this many in-process masters, for trying out

	Group     string // name of the group of masters, part of the fingerprint; "default"
	KeyPrefix string // stands before the keys of this daemon's locks; ""
	// Prefixes are the key prefixes of all daemons of the group, KeyPrefix among them. The first one
	// stands before what they share. Without a list it is that of the group, if KeyPrefix is the
	// first one there, and KeyPrefix alone in a new group.
	Prefixes []string
	Slots    string // that the group serves, one of several groups; "" = all, of one group
	// MapVersion, Leaving, To and LeftAt are those of the configuration, see package admission.
	MapVersion, LeftAt int64
	Leaving, To        string
	// OnConfiguration receives each configuration of the group before a master is admitted under it,
	// perhaps several times. It must not block, nor call the pool. With it, the pool follows changes
	// of the slots; nil = a daemon of an only group, which stays with its own.
	OnConfiguration func(*Configuration)

	MaxTTL  time.Duration // longest lease; 60 s. Decides how long a master that forgot may not vote
	MaxKeep time.Duration // how long finished work is kept at most; 10 min

	// MasterTimeout is how long one flush may take, and how far a master's
	// clock may be ahead of its estimate while its votes count; 100 ms.
	MasterTimeout time.Duration
	// Late is how much longer a copy lasts than its lease. It is the MasterTimeout: only
	// embedded masters allow another one, and their MasterTimeout is raised without it.
	Late time.Duration

	AwaitBootstrap  bool     // a new group begins by redlockd bootstrap only; see evidence.blank
	RestartGuardOff bool     // a master that forgot votes at once: unsafe, for tests
	FollowTo        []string // addresses that an operator allows beside those of Masters, * is any text; see unnamed
	FollowOff       bool     // the list of masters stays as it is when the group changes: for tests
	AssumeDurable   bool     // masters whose CONFIG may not be read count as durable: the operator assures it

	Databases int // logical databases, each with lanes of its own; 16
	// MaxQueue bounds the operations waiting on one master; 100 000. At the
	// wire's few hundred bytes each that is the bound on bytes, too.
	MaxQueue           int
	MaxPendingReleases int // releases kept for a master that does not answer; 65 536
	// MaxFlush bounds the operations of one flush; 256. Measured on loopback
	// with 256 callers: flushes hold 60–130, so the bound is for storms.
	MaxFlush int

	Clock  Clock        // SystemClock
	Logger *slog.Logger // slog.Default
	Dialer Dialer       // nil = rueidis over a socket
	// Tracker opens connections that track keys with waiters; nil =
	// rueidis over a socket, or none if there is a Dialer.
	Tracker TrackDialer
	Tasks   Tasks // nil = a bounded pool of goroutines
	// Jitter is a random delay, at least 0 and below limit; nil = rand.N.
	Jitter func(limit time.Duration) time.Duration
}

// Limits of the protocol rather than of taste.
const (
	// maxMasters is the largest group.
	maxMasters = 9
	// maxWindow is how many flushes of a connection may be under way, see window.go.
	maxWindow = 16
	// heartbeat is how often an idle master is verified: a clock step undone
	// between two seals goes unseen, so this is the width of that blind spot.
	heartbeat = 100 * time.Millisecond
	// maxBehind is how far a master's clock may lag its estimate while it votes.
	maxBehind = 250 * time.Millisecond
)

// maxEmbeddedFlush bounds a flush to an embedded master, which needs a fresh Lua
// state for every script (0.4 ms): 16 of them stay far below the master timeout.
const maxEmbeddedFlush = 16

// minEmbeddedTimeout is the least master timeout with embedded masters: they
// compete with everything else in this process for the processor. Copies do not last longer
// for it, see Options.Late: their ends are absolute, and on this daemon's own clock.
const minEmbeddedTimeout = time.Second

// WithDefaults fills in the defaults, or returns what is wrong.
func (o *Options) WithDefaults() error {
	if o.Embedded > 0 && len(o.Masters) > 0 {
		return fmt.Errorf("masters and embedded masters exclude each other: %d masters and embedded %d given", len(o.Masters), o.Embedded)
	}
	if n := len(o.Masters) + o.Embedded; n < 3 || n > maxMasters {
		return fmt.Errorf("masters: %d given, 3 to %d allowed; an even number tolerates no more failures than one fewer, and is a step of a change only", n, maxMasters)
	}
	o.Group = cmp.Or(o.Group, "default")
	o.MaxTTL = cmp.Or(o.MaxTTL, time.Minute)
	o.MaxKeep = cmp.Or(o.MaxKeep, 10*time.Minute)
	o.MasterTimeout = cmp.Or(o.MasterTimeout, 100*time.Millisecond)
	o.Databases = cmp.Or(o.Databases, 16)
	o.MaxQueue = cmp.Or(o.MaxQueue, 100_000)
	o.MaxPendingReleases = cmp.Or(o.MaxPendingReleases, 65_536)
	if o.Embedded == 0 {
		o.Late = o.MasterTimeout
	} else {
		o.Late = cmp.Or(o.Late, o.MasterTimeout)
		o.MaxFlush = cmp.Or(o.MaxFlush, maxEmbeddedFlush)
		o.MasterTimeout = max(o.MasterTimeout, minEmbeddedTimeout)
	}
	o.MaxFlush = cmp.Or(o.MaxFlush, 256)
	o.Clock = cmp.Or(o.Clock, SystemClock())
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	if len(o.Prefixes) > 0 && !slices.Contains(o.Prefixes, o.KeyPrefix) {
		return fmt.Errorf("key-prefix: %q is none of the group's key prefixes: %q", o.KeyPrefix, o.Prefixes)
	}
	seen := map[string]bool{}
	for _, m := range o.Masters {
		if m.Name == "" || m.Address == "" || seen[m.Name] {
			return fmt.Errorf("masters: %q at %q: every master needs an address and a name of its own", m.Name, m.Address)
		}
		seen[m.Name] = true
	}
	return nil
}

// DialTimeout bounds every step of a dial: a master that needs longer than two
// flush timeouts for a handshake could not vote anyway.
func (o *Options) DialTimeout() time.Duration {
	return max(2*o.MasterTimeout, 200*time.Millisecond)
}

// StallTimeout returns the time for which a connection waits for an answer before it ends. A busy machine
// delays a master by some 100 ms now and then, and an admission, with its ten round trips, by
// seconds; a connection to a master that is gone costs nothing while it waits. It outlasts the
// repetitions of a request (package engine): some undos may be sent on the same one only.
func (o *Options) StallTimeout() time.Duration {
	return max(4*o.MasterTimeout, time.Second)
}

// Age returns the age that a memory must have before its answer "not held" counts:
// the longest lease, 1 % clock drift, and 2 s for everything else.
func (o *Options) Age() time.Duration {
	if o.RestartGuardOff {
		return 0
	}
	return o.MaxTTL + o.MaxTTL/100 + 2*time.Second
}

// WorkAge returns the age that a memory must have before the absence of a record of work counts: a record
// lasts as long as its attempt's lease and is kept for at most MaxKeep after that.
func (o *Options) WorkAge() time.Duration {
	longest := *o
	longest.MaxTTL += o.MaxKeep
	return longest.Age()
}

// Quorum is the number of masters out of n that any two majorities share one of.
func Quorum(n int) int { return n/2 + 1 }
