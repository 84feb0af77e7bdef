// This file contains what a wait queue knows of those that contend with it.

package wait

import (
	"hash/crc32"
	"time"
)

const (
	// maxPassed and maxPassedTime are how often, and for how long, others are granted the key before a wait
	// queue takes a ticket.
	maxPassed     = 16
	maxPassedTime = time.Second

	// windowTime is longer than the usual pause of a Redlock client between two tries, 200 ms with some
	// spread; busyInterval is how long a key is busy before that.
	windowTime   = 225 * time.Millisecond
	busyInterval = 20 * windowTime
	// windowSlack is what the clocks of the masters may differ by until a window is over there, too.
	windowSlack = 10 * time.Millisecond
	// busyKeys bounds the keys of which the busy time is known while no client waits for a moment,
	// which is busyGap at most.
	busyKeys = 256
	busyGap  = time.Second

	// minRetryDelay and maxRetryDelay bound the delays after undecided requests.
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = time.Second
)

// retryDelay is the pause after some requests in a row that the masters could not decide.
func retryDelay(failures int32) time.Duration {
	return min(maxRetryDelay, minRetryDelay<<min(failures-1, 8))
}

// passes counts how often others were granted the key since this wait queue was.
type passes struct {
	woken bool // the request under way was sent because the key was free
	n     int
	since time.Duration
}

// refused notes that a request was refused: if the key was free before, it was granted to another client.
func (p *passes) refused(now time.Duration) {
	if !p.woken {
		return
	}
	if p.woken = false; p.n == 0 {
		p.since = now
	}
	p.n++
}

// enough reports whether others were granted the key often enough.
func (p *passes) enough(now time.Duration) bool {
	return p.n >= maxPassed || p.n > 1 && now-p.since >= maxPassedTime
}

// busyTime is since when a key was not left free, as far as its wait queue knows.
type busyTime struct {
	since time.Duration // 0 = no lock was handed over yet
	free  time.Duration // since when the key is known to be free, 0 = it is not
	open  time.Duration // until when this daemon's latest window is open
}

// noteFree notes that a quorum of masters has no copy of the key, though the head may not have it. After
// half a window the busy time begins anew.
func (b *busyTime) noteFree(now time.Duration) {
	if b.free == 0 {
		b.free = now
	}
	if now-b.free >= windowTime/2 {
		b.since = now
	}
}

// closes reports, once, that this daemon's window is over.
func (b *busyTime) closes(now time.Duration) bool {
	if b.open == 0 || now < b.open {
		return false
	}
	b.open = 0
	return true
}

// busyKey is the busy time of a wait queue that has ended.
type busyKey struct {
	db           int
	keys         string
	since, ended time.Duration
}

// busyTable has them by their keys.
type busyTable [busyKeys]busyKey

func (t *busyTable) of(keys string) *busyKey {
	return &t[crc32.ChecksumIEEE([]byte(keys))%busyKeys]
}

// find is the busy time of a new wait queue.
func (t *busyTable) find(db int, keys string, now time.Duration) (b busyTime) {
	if k := t.of(keys); k.db == db && k.keys == keys && now-k.ended < busyGap {
		b.since = k.since
	}
	return b
}

// keep keeps it when the queue ends.
func (t *busyTable) keep(db int, keys string, b busyTime, now time.Duration) {
	if b.since > 0 {
		*t.of(keys) = busyKey{db, keys, b.since, now}
	}
}
