// Quota of counters per user. A counter stays on the masters for ever. So its name
// counts from the user's first use of it through this daemon, until DIDS DEL of that
// name through this daemon, or the daemon's end.

package access

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"redlockd/redlock"
)

// counterName stands for a counter's name in a quota: a digest, so that the longest names
// cost no more memory than others. That bounds a user to about 50 bytes for each counter.
type counterName [16]byte

func counterNameOf(db int, name redlock.Key) counterName {
	sum := sha256.Sum256([]byte(strconv.Itoa(db) + ":" + string(name)))
	return counterName(sum[:16])
}

// MayCount notes that the user uses a counter, or refuses it. The note stays if the
// request yields no id: some master may have the counter all the same.
func (u *Users) MayCount(who *Rights, db int, name redlock.Key) error {
	if who == nil || who.counters == 0 {
		return nil
	}
	at := counterNameOf(db, name)
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := who.account
	if _, known := a.counters[at]; known {
		return nil
	}
	if len(a.counters) >= who.counters {
		return fmt.Errorf("user '%s' may use %d counters (counters in the users file) and has used as many others since this daemon started; nothing was done; use one of them, or have an admin delete one with DIDS DEL", who.name, who.counters)
	}
	if a.counters == nil {
		a.counters = make(map[counterName]struct{})
	}
	a.counters[at] = struct{}{}
	return nil
}

// CounterGone takes a deleted counter from the quotas of all users.
func (u *Users) CounterGone(db int, name redlock.Key) {
	if u == nil {
		return
	}
	at := counterNameOf(db, name)
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	for _, who := range u.roster.Load().users {
		delete(who.account.counters, at)
	}
}
