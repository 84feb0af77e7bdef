package preauth

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
	// After RejectsPerPause rejected connections in a row, accepting pauses for
	// RejectPause. At most 3 200 a second are rejected then; the others wait in the
	// kernel's queue, or the kernel drops them.
	RejectsPerPause = 16
	RejectPause     = 5 * time.Millisecond
)

// ConnRates counts the connections of each address. It removes an address when its
// bucket is full again, so the rate bounds the memory: a flood from many addresses keeps
// each for one interval only. nil allows every connection.
type ConnRates struct {
	rate tokenRate // of one address; the zero value allows every connection
	now  func() time.Time

	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of an address is full again
	sweep int                  // at this size of full, full buckets are removed
}

// NewConnRates allows one address that many connections per second, 0 for no limit. now is
// the clock.
func NewConnRates(each int, now func() time.Time) *ConnRates {
	a := &ConnRates{now: now, full: make(map[string]time.Time), sweep: minSweepSize}
	if each > 0 {
		a.rate = perSecond(each, connBurst*each)
	}
	return a
}

// Allow reports whether another connection from this address is allowed.
func (a *ConnRates) Allow(remote net.Addr) bool {
	if a == nil || a.rate.interval == 0 {
		return true
	}
	host, _ := Origin(remote)
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

func (a *ConnRates) sweepLocked(now time.Time) {
	for host, full := range a.full {
		if !full.After(now) {
			delete(a.full, host)
		}
	}
	a.sweep = max(minSweepSize, 2*len(a.full))
}

// Origin returns the host that a connection counts for: an IPv4 address, or an IPv6
// network of 64 bits, since the owner of one such address has all of them. Connections
// that do not use IP have the host "" and are local.
func Origin(remote net.Addr) (host string, local bool) {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return "", true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if network, err := ip.Prefix(64); err == nil && ip.Is6() {
		return network.Masked().String(), ip.IsLoopback()
	}
	return ip.String(), ip.IsLoopback()
}
