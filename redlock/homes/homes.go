// Package homes agrees with the other daemons which of them is the home of each slot. Every
// daemon announces its address once a second on a channel of the masters; the division follows
// from the announcements that came lately. Every daemon serves every key, so a division that is
// out of date costs time and nothing else.
package homes

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/slots"
)

const (
	announceEvery = time.Second
	// firstEvery is the interval until the first announcement has come back.
	firstEvery = 100 * time.Millisecond
	// maxSilence is after how long a daemon without an announcement loses its slots.
	maxSilence = 5 * announceEvery
	// maxDaemons and maxAddress bound what is remembered of other daemons.
	maxDaemons, maxAddress = 256, 300
	// version begins every announcement. joining ends those of a daemon that does not accept clients
	// yet: only others that begin at the same time take it into their division. leaving ends the last.
	version, joining, leaving = "1 ", " joins", " leaves"
)

// Homes are the daemons of the same masters, by their announcements.
type Homes struct {
	own    string
	pools  []*pool.Pool
	clock  pool.Clock
	log    *slog.Logger
	joined chan struct{} // closed when all other daemons have had the time to announce themselves

	mu     sync.Mutex
	groups []slots.Ranges // in the order of their first slots
	timer  pool.Timer
	echoed bool // an own announcement has come back
	open   bool // joined is closed
	closed bool
	latest map[string]time.Duration // announcement of each other daemon, by address
	now    slots.Division
}

// New announces this daemon by the masters of all pools. groups are their slots, in any
// order. own is the address at which clients reach this daemon.
func New(own string, groups []slots.Ranges, log *slog.Logger, pools ...*pool.Pool) *Homes {
	h := &Homes{own: own, groups: sorted(groups), pools: pools, clock: pools[0].Clock(), log: log, joined: make(chan struct{}), latest: map[string]time.Duration{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateLocked()
	for _, p := range pools {
		p.Group(0).Daemons.Listen(h.receive)
	}
	if !pools[0].Group(0).Daemons.Carried { // there is no other daemon
		h.echoed = true
		h.openLocked()
	}
	h.timer = h.clock.AfterFunc(0, h.onTimer)
	return h
}

// sorted are the groups in the order of their first slots, the same in every daemon.
func sorted(groups []slots.Ranges) []slots.Ranges {
	return slices.SortedFunc(slices.Values(groups), func(a, b slots.Ranges) int { return cmp.Compare(a[0].First, b[0].First) })
}

// SetGroups takes the slots of all groups when slots have moved.
func (h *Homes) SetGroups(groups []slots.Ranges) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.groups = sorted(groups)
	h.now.Homes = slots.Homes(h.groups, h.now.Daemons)
}

// AwaitOthers returns when the other daemons are known, or cannot be: a client that gets its
// first division from this daemon may keep it for long.
func (h *Homes) AwaitOthers(ctx context.Context) {
	if h == nil { // this daemon is no node of a cluster
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxSilence)
	defer cancel()
	select {
	case <-h.joined:
	case <-ctx.Done():
	}
}

// Division is that among the daemons of now; its lists may not be changed.
func (h *Homes) Division() slots.Division {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateLocked()
	return h.now
}

// Close announces that this daemon leaves.
func (h *Homes) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.timer.Stop()
	h.mu.Unlock()
	h.publish(version + h.own + leaving)
}

func (h *Homes) onTimer() {
	h.mu.Lock()
	closed, next, message := h.closed, firstEvery, version+h.own
	if h.echoed {
		next = announceEvery
	}
	if !h.open {
		message += joining
	}
	if !closed {
		h.updateLocked()
		h.timer.Reset(next)
	}
	h.mu.Unlock()
	if !closed {
		h.publish(message)
	}
}

// onJoined begins to announce that this daemon accepts clients.
func (h *Homes) onJoined() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openLocked()
	h.timer.Reset(0)
}

func (h *Homes) openLocked() {
	h.open = true
	close(h.joined)
}

// publish sends a message by the masters of every group.
func (h *Homes) publish(message string) {
	for _, p := range h.pools {
		engine.Publish(p, p.Group(0), p.Group(0).Daemons.Channel, message)
	}
}

// receive takes a message from one of the masters.
func (h *Homes) receive(message string) {
	address, ok := strings.CutPrefix(message, version)
	address, joins := strings.CutSuffix(address, joining)
	address, leaves := strings.CutSuffix(address, leaving)
	if _, _, err := net.SplitHostPort(address); !ok || err != nil || len(address) > maxAddress {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.latest[address]
	switch {
	case address == h.own:
		if !h.echoed { // so all announcements from now on are received
			h.echoed = true
			h.clock.AfterFunc(announceEvery*3/2, h.onJoined)
		}
		return
	case joins && h.open:
	case leaves:
		delete(h.latest, address)
	case known || len(h.latest) < maxDaemons:
		h.latest[address] = h.clock.Now()
	}
}

// updateLocked divides the slots anew if a daemon has come or gone.
func (h *Homes) updateLocked() {
	daemons := []string{h.own}
	for address, at := range h.latest {
		if h.clock.Now()-at > maxSilence {
			delete(h.latest, address)
			continue
		}
		daemons = append(daemons, address)
	}
	slices.Sort(daemons)
	if slices.Equal(daemons, h.now.Daemons) {
		return
	}
	if h.now.Daemons != nil {
		h.log.Info("daemons of the slot map changed", "daemons", strings.Join(daemons, " "))
	}
	h.now = slots.Division{Own: h.own, Daemons: daemons, Homes: slots.Homes(h.groups, daemons)}
}
