package proxy

// arrivals.go answers: how often may one address connect? Whoever comes again
// and again costs the accepting, the greeting and the farewell each time, however
// little they say in between. Those who come too fast are reset before anything
// is made for them.

import (
	"net"
	"sync"
	"time"
)

const (
	// arrivalBurst seconds' worth of connections may come at once: a fleet behind
	// one address starts together.
	arrivalBurst = 5
	// fewestAddresses are remembered before the first sweep, some 100 bytes each.
	fewestAddresses = 1024
	// tooHasty connections turned away in a row make the accepting pause for
	// hastyPause. At most 3 200 a second are turned away then; the others wait in
	// the kernel, or are not let in.
	tooHasty   = 16
	hastyPause = 5 * time.Millisecond
)

// arrivals counts the connections of each address. An address is forgotten when
// its bucket is full again, so what is kept is bounded by the rate: a flood from
// many addresses keeps each for one interval only.
type arrivals struct {
	pace pace // of one address; the zero value lets everybody in
	now  func() time.Time

	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of an address is full again
	sweep int                  // at this size of full the forgotten are removed
}

// limit sets how many a second one address may open, 0 for no limit.
func (a *arrivals) limit(each int) {
	a.now, a.full, a.sweep = time.Now, make(map[string]time.Time), fewestAddresses
	if each > 0 {
		a.pace = perSecond(each, arrivalBurst*each)
	}
}

// admit tells whether another connection from there may come in.
func (a *arrivals) admit(remote net.Addr) bool {
	if a.pace.interval == 0 {
		return true
	}
	host, _ := origin(remote)
	if host == "" {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	full, wait := a.pace.take(a.full[host], now, 1)
	if wait > 0 {
		return false
	}
	a.full[host] = full
	if len(a.full) >= a.sweep {
		a.forgetLocked(now)
	}
	return true
}

func (a *arrivals) forgetLocked(now time.Time) {
	for host, full := range a.full {
		if !full.After(now) {
			delete(a.full, host)
		}
	}
	a.sweep = max(fewestAddresses, 2*len(a.full))
}
