package proxy

// connrate.go limits how often one address may connect. A client that reconnects again
// and again costs an accept, a handshake and a close each time, however little it sends.
// Connections beyond the rate are reset before anything is allocated for them.

import (
	"net"
	"sync"
	"time"
)

const (
	// connBurst seconds' worth of connections may come at once: a fleet behind
	// one address starts together.
	connBurst = 5
	// minSweepSize addresses are stored before the first sweep, some 100 bytes each.
	minSweepSize = 1024
	// After rejectsPerPause rejected connections in a row, accepting pauses for
	// rejectPause. At most 3 200 a second are rejected then; the others wait in the
	// kernel's queue, or the kernel drops them.
	rejectsPerPause = 16
	rejectPause     = 5 * time.Millisecond
)

// connRates counts the connections of each address. It removes an address when its
// bucket is full again, so the rate bounds the memory: a flood from many addresses keeps
// each for one interval only.
type connRates struct {
	rate tokenRate // of one address; the zero value allows every connection
	now  func() time.Time

	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of an address is full again
	sweep int                  // at this size of full, full buckets are removed
}

// setRate sets how many connections per second one address may open, 0 for no limit.
func (a *connRates) setRate(each int) {
	a.now, a.full, a.sweep = time.Now, make(map[string]time.Time), minSweepSize
	if each > 0 {
		a.rate = perSecond(each, connBurst*each)
	}
}

// allow reports whether another connection from this address is allowed.
func (a *connRates) allow(remote net.Addr) bool {
	if a.rate.interval == 0 {
		return true
	}
	host, _ := origin(remote)
	if host == "" {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	full, wait := a.rate.take(a.full[host], now, 1)
	if wait > 0 {
		return false
	}
	a.full[host] = full
	if len(a.full) >= a.sweep {
		a.sweepLocked(now)
	}
	return true
}

func (a *connRates) sweepLocked(now time.Time) {
	for host, full := range a.full {
		if !full.After(now) {
			delete(a.full, host)
		}
	}
	a.sweep = max(minSweepSize, 2*len(a.full))
}
