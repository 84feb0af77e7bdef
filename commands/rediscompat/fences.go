// Fences of locks that were taken by SET NX or by a script. Their replies cannot
// carry a fence, so the daemon that granted it shows it as the reply to
// GET redlockd:fence:<key>.

package rediscompat

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	// fencePrefix before the name of a lock names its fence.
	fencePrefix = access.ReservedPrefix + "fence:"
	// maxFences bounds the remembered fences, some 200 bytes each.
	maxFences = 100_000
)

// fences are of locks whose grant by this daemon did not report them. The zero value
// is ready.
type fences struct {
	mu  sync.Mutex
	all map[access.HeldKey]fence
}

type fence struct {
	token redlock.Token
	value redlock.Fence
	until time.Time
}

func (f *fences) note(grant *redlock.Grant) {
	until := time.Now().Add(grant.Validity())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[access.HeldKey]fence)
	}
	if len(f.all) >= maxFences {
		f.evictLocked()
	}
	for i, key := range grant.Keys() {
		// Copies: the originals point into the buffer of a whole command.
		key = redlock.Key(strings.Clone(string(key)))
		f.all[access.HeldKey{DB: grant.DB(), Key: key}] = fence{redlock.Token(strings.Clone(string(grant.TokenOf(i)))), grant.Fence, until}
	}
}

func (f *fences) prolong(grant *redlock.Grant) {
	until := time.Now().Add(grant.Validity())
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range grant.Keys() {
		at := access.HeldKey{DB: grant.DB(), Key: key}
		if one, ok := f.all[at]; ok && one.token == grant.Token {
			one.until = until
			f.all[at] = one
		}
	}
}

// reply is the fence of the grant that holds the key now, nil if it was granted elsewhere
// or the key is free.
func (f *fences) reply(at access.HeldKey, v redlock.View) commands.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.all[at]
	if !ok || v.Kind != "string" || one.token != v.Value || !one.until.After(time.Now()) {
		return commands.Nil
	}
	return commands.Bulk(strconv.FormatInt(int64(one.value), 10))
}

// evictLocked drops what has expired, and everything if that is too little: an
// unknown fence is nil, never wrong.
func (f *fences) evictLocked() {
	now := time.Now()
	for at, one := range f.all {
		if !one.until.After(now) {
			delete(f.all, at)
		}
	}
	if len(f.all) > maxFences*3/4 {
		clear(f.all)
	}
}
