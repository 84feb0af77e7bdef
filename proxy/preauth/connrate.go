package preauth

// connrate.go limits how often one address may connect. A client that reconnects again
// and again costs an accept, a handshake and a close each time, however little it sends.
// Connections beyond the rate are reset before anything is allocated for them.

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// connBurst seconds' worth of connections may come at once: a fleet behind
	// one address starts together.
	connBurst = 5
	// trustedConns times as many connections may come from an address whose clients log in: programs
	// that connect for each request, or many of them behind one address.
	trustedConns = 10
	// minSweepSize addresses are stored before the first sweep, some 150 bytes each.
	minSweepSize = 1024
	// After RejectsPerPause rejected connections in a row, accepting pauses for
	// RejectPause. At most 3 200 a second are rejected then; the others wait in the
	// kernel's queue, or the kernel drops them.
	RejectsPerPause = 16
	RejectPause     = 5 * time.Millisecond
)

// ConnRates counts the connections of each address. It removes an address when its
// limiter has all tokens again, so the rate bounds the memory: a flood from many addresses
// keeps each for one interval only. nil allows every connection.
type ConnRates struct {
	each int // connections a second of one address; 0 allows every connection
	now  func() time.Time

	mu    sync.Mutex
	hosts map[string]*rate.Limiter
	sweep int // at this size of hosts, those with all tokens are removed
}

// NewConnRates allows one address that many connections per second, 0 for no limit. now is
// the clock.
func NewConnRates(each int, now func() time.Time) *ConnRates {
	return &ConnRates{each: each, now: now, hosts: make(map[string]*rate.Limiter), sweep: minSweepSize}
}

// Allow reports whether another connection from this address is allowed.
func (c *ConnRates) Allow(remote net.Addr) bool {
	if c == nil || c.each == 0 {
		return true
	}
	host, _ := Origin(remote)
	if host == "" {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, limiter := c.now(), c.hosts[host]
	if limiter == nil {
		limiter = limiterOf(c.each)
		c.hosts[host] = limiter
	}
	allowed := limiter.AllowN(now, 1)
	if len(c.hosts) >= c.sweep {
		c.sweepLocked(now)
	}
	return allowed
}

func limiterOf(each int) *rate.Limiter { return rate.NewLimiter(rate.Limit(each), connBurst*each) }

// Trust notes that a client of this address has logged in, or need not. The address may connect more
// often until it is removed.
func (c *ConnRates) Trust(host string) {
	if c == nil || c.each == 0 || host == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if limiter := c.hosts[host]; limiter == nil || limiter.Burst() == connBurst*c.each {
		c.hosts[host] = limiterOf(trustedConns * c.each)
	}
}

func (c *ConnRates) sweepLocked(now time.Time) {
	for host, limiter := range c.hosts {
		if limiter.TokensAt(now) >= float64(limiter.Burst()) {
			delete(c.hosts, host)
		}
	}
	c.sweep = max(minSweepSize, 2*len(c.hosts))
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
