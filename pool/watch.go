// Watched keys: package notify calls watchers back when keys change.

package pool

import "redlockd/pool/notify"

// Watcher receives the state of a key on the masters.
type Watcher = notify.Watcher

// Watch reads the key's remaining time on every master and tracks its changes; round
// is returned with the answers.
func (g *Group) Watch(key string, round uint64, w Watcher) { g.keys.Watch(key, round, w) }

// Unwatch ends the calls of a watcher for a key.
func (g *Group) Unwatch(key string, w Watcher) { g.keys.Unwatch(key, w) }
