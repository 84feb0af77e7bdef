// Unlock messages for Redisson. A waiter for the lock name subscribes to channel
// redisson_lock__channel:{name}, without the braces if the name has its own, and tries again when
// "0" comes. As for Spring's registries, redlockd sends it for everything that ends a lock.

package conn

import (
	"strings"

	"redlockd/commands"
	"redlockd/redlock"
)

const (
	redissonChannel = "redisson_lock__channel:"
	redissonUnlock  = "0"
)

// redissonLocked adds the message to clients of Redisson that wait for the lock.
func (r *channels) redissonLocked(all []delivery, w *dbSubscriptions, may map[string]bool, key redlock.Key) []delivery {
	channel := redissonChannel + string(key)
	if !strings.Contains(string(key), "{") {
		channel = redissonChannel + "{" + string(key) + "}"
	}
	if a := w.sets[toChannel][channel]; a != nil {
		all = r.addRecipientsLocked(all, a, may, key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(redissonUnlock))
	}
	return all
}
