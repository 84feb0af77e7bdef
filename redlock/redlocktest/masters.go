package redlocktest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// MasterTimeout is that of all daemons: wide enough for a busy machine, and no duration that
// another timer of the pool has.
const MasterTimeout = 2 * time.Second

// Masters are a group of redis-servers.
type Masters []*faulty.Server

// Name of a master, the same for every daemon.
func Name(i int) string { return string(rune('a' + i)) }

// Do sends a command to a master directly, past everything that is being tested.
func (m Masters) Do(t *testing.T, i int, args ...any) any {
	t.Helper()
	reply, err := m[i].Do(args...)
	if err != nil {
		t.Fatalf("master %s: %v: %v", Name(i), args, err)
	}
	return reply
}

// Calls adds up how often the masters have executed a command.
func (m Masters) Calls(t *testing.T, command string) (n int64) {
	t.Helper()
	for i := range m {
		_, stats, _ := strings.Cut(m.Do(t, i, "INFO", "commandstats").(string), "cmdstat_"+command+":calls=")
		calls, _, _ := strings.Cut(stats, ",")
		one, _ := strconv.ParseInt(calls, 10, 64)
		n += one
	}
	return n
}

// NoQueues waits until no master has anything of a key's queue.
func (m Masters) NoQueues(t *testing.T, key string) {
	t.Helper()
	Eventually(t, "the queue's keys are gone", func() bool {
		for i := range m {
			for _, one := range m[i].Keys() {
				if strings.HasPrefix(one, "redlockd:q") && strings.HasSuffix(one, ":"+key) {
					return false
				}
			}
		}
		return true
	})
}

// Options of a daemon on all masters.
func (m Masters) Options(t *testing.T, maxTTL time.Duration) pool.Options {
	o := pool.Options{MaxTTL: maxTTL, MasterTimeout: MasterTimeout, Logger: Logger(t)}
	for i, s := range m {
		o.Masters = append(o.Masters, pool.Master{Name: Name(i), Network: "tcp", Address: s.Addr()})
	}
	return o
}

// Relays puts relays of its own between a daemon and its masters, one before each.
func Relays(t *testing.T, o *pool.Options) (relays []*faulty.Relay) {
	for i := range o.Masters {
		r := faulty.NewRelay(o.Masters[i].Address)
		t.Cleanup(r.Close)
		relays = append(relays, r)
		o.Masters[i].Address = r.Addr()
	}
	return relays
}
