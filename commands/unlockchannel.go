// Where does a waiter of Spring Integration's RedisLockRegistry hear that its lock is
// free? In the mode PUB_SUB_LOCK it sleeps until a message with the lock's name
// comes: of <registry>:<name> on channel <registry>-channel (versions 5 and 6), or
// on <registry>-channel:<registry>:<name>, to which it listens by the pattern
// <registry>-channel:* (since 7). The script that releases the lock publishes that on
// the masters, where nobody listens. Here everything that ends a lock is told,
// through whichever daemon it happens; also the end of a lease, of which Redis
// tells nobody.
package commands

import (
	"strings"

	"redlockd/redlock"
)

const (
	registryChannel = "-channel"
	registryPattern = registryChannel + ":*"
	// mostRegistries bounds what a name of nothing but colons costs.
	mostRegistries = 16
)

// isHeard tells whether anything can ever happen on a channel.
func isHeard(channel string) bool {
	return strings.HasPrefix(channel, channelPrefix) || strings.HasSuffix(channel, registryChannel)
}

// ends tells whether whoever held the lock does so no more.
func ends(kind redlock.EventKind) bool {
	switch kind {
	case redlock.EventReleased, redlock.EventExpired, redlock.EventLost, redlock.EventForced:
		return true
	}
	return false
}

// registriesLocked adds the messages to registries that the lock may be one of:
// what stands before any colon of its name may be their name.
func (r *channels) registriesLocked(all []parcel, w *wing, may map[string]bool, key redlock.Key) []parcel {
	lock, seen := string(key), 0
	for i := 0; i < len(lock) && seen < mostRegistries; i++ {
		if lock[i] != ':' {
			continue
		}
		seen++
		registry := lock[:i]
		if a := w.channels[registry+registryChannel]; a != nil {
			all = r.addressLocked(all, a, may, key, Bulk("message"), Bulk(registry+registryChannel), Bulk(lock))
		}
		if a := w.patterns[registry+registryPattern]; a != nil {
			all = r.addressLocked(all, a, may, key, Bulk("pmessage"), Bulk(registry+registryPattern), Bulk(registry+registryChannel+":"+lock), Bulk(lock))
		}
	}
	return all
}
