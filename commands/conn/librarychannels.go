// Unlock messages for RedisLockRegistry of Spring Integration. In the mode PUB_SUB_LOCK
// a waiter sleeps until a message with the lock's name comes: <registry>:<name> on
// channel <registry>-channel (versions 5 and 6), or on
// <registry>-channel:<registry>:<name>, to which it subscribes by the pattern
// <registry>-channel:* (since 7). The script that releases the lock publishes that on
// the masters, which have no subscribers. redlockd sends the message for everything
// that ends a lock, through whichever daemon it happens; also for the end of a lease,
// for which Redis sends none.
//
// Unlock messages for Redisson: a waiter for the lock name subscribes to channel
// redisson_lock__channel:{name}, without the braces if the name has its own, and tries again when
// "0" comes, for the same ends.

package conn

import (
	"strings"

	"redlockd/commands"
	"redlockd/redlock"
)

const (
	registryChannel = "-channel"
	// maxRegistries bounds what a name of nothing but colons costs.
	maxRegistries = 16
)

// hasEvents reports whether anything can ever happen on a channel.
func hasEvents(channel string) bool {
	return strings.HasPrefix(channel, channelPrefix) || strings.HasSuffix(channel, registryChannel) || strings.HasPrefix(channel, redissonChannel)
}

// endsLock reports whether the event ends the lock of its holder.
func endsLock(kind redlock.EventKind) bool {
	switch kind {
	case redlock.EventReleased, redlock.EventExpired, redlock.EventLost, redlock.EventForced:
		return true
	}
	return false
}

// registriesLocked adds the messages to registries that the lock may belong to: the
// text before any colon of its name may be their name.
func (cs *channels) registriesLocked(all []delivery, w *dbSubscriptions, may map[string]bool, key redlock.Key) []delivery {
	lock, seen := string(key), 0
	for i := 0; i < len(lock) && seen < maxRegistries; i++ {
		if lock[i] != ':' {
			continue
		}
		seen++
		channel := lock[:i] + registryChannel
		if a := w.sets[toChannel][channel]; a != nil {
			all = cs.addRecipientsLocked(all, a, may, key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(lock))
		}
		if a := w.sets[toPattern][channel+":*"]; a != nil {
			all = cs.addRecipientsLocked(all, a, may, key, commands.Bulk("pmessage"), commands.Bulk(channel+":*"), commands.Bulk(channel+":"+lock), commands.Bulk(lock))
		}
	}
	return all
}

const (
	redissonChannel = "redisson_lock__channel:"
	redissonUnlock  = "0"
)

// redissonLocked adds the message to clients of Redisson that wait for the lock.
func (cs *channels) redissonLocked(all []delivery, w *dbSubscriptions, may map[string]bool, key redlock.Key) []delivery {
	channel := redissonChannel + string(key)
	if !strings.Contains(string(key), "{") {
		channel = redissonChannel + "{" + string(key) + "}"
	}
	if a := w.sets[toChannel][channel]; a != nil {
		all = cs.addRecipientsLocked(all, a, may, key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(redissonUnlock))
	}
	return all
}
