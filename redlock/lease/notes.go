// This file keeps notes about lock holders for people: the text that a holder gave, the
// daemon that it came through, and its client.
//
// Notes carry no guarantee. They are kept on the masters, so that every daemon can show
// them. They have a key of their own beside the lock: a hash with one entry for each
// holder. A holder without a text costs nothing, unless LockInfo makes the daemon note
// every holder of a lease. The daemon writes a note after the grant and prolongs it when
// the lease is extended through this daemon. It drops the note when the lease is released
// through this daemon; otherwise the note ends with the lease.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// noteOf is the note of a new grant if its request gives a text or LockInfo is set. A lock
// without an expiry gets no note. Such a note would not end by itself: DEL, which names no
// token, or a release through another daemon would leave it behind.
func (l *Leases) noteOf(r *LockRequest, fence engine.Fence) string {
	if r.Meta == "" && !l.everyHolder || r.TTL >= Endless {
		return ""
	}
	note := Note{Meta: r.Meta, Daemon: l.daemon, Fence: fence}
	if r.Requester != nil {
		note.Client, note.Name = r.Requester.Addr, r.Requester.Name
	}
	return note.encode()
}

// writeNote keeps a note on every master until the lease lapses; "" is no note. With prolongs, a
// note that is there stays as it is: it may have been replaced through another daemon.
func (l *Leases) writeNote(id engine.LeaseID, text string, until time.Duration, prolongs bool) {
	if text != "" {
		l.sendNote(nil, id, text, until, prolongs)
	}
}

// ReplaceNote replaces the note of a holder whose lease lasts for left.
func (l *Leases) ReplaceNote(id engine.LeaseID, n Note, left time.Duration) {
	text := n.encode()
	l.records.describe(id, text)
	l.writeNote(id, text, l.engine.Clock.Now()+left, false)
}

// dropNote drops the note of a lease that is being released; "" is no note.
func (l *Leases) dropNote(b *engine.Batch, id engine.LeaseID, text string) {
	if text != "" {
		l.sendNote(b, id, "", 0, false)
	}
}

// sendNote writes or drops a note on every master. It is not repeated on a master that does
// not answer: the note expires. It follows the acquire of its lock and precedes the release.
func (l *Leases) sendNote(b *engine.Batch, id engine.LeaseID, text string, until time.Duration, prolongs bool) {
	l.engine.Submit(b, l.engine.Pool.Group(id.DB), &engine.Message{
		Plan: pool.Props{Key: l.engine.MasterKey(id.Key), SharesKey: true},
		Write: func(m *pool.SendContext, c *pool.Command) bool {
			end := "0"
			if text != "" {
				left := until - m.Now
				if left <= 0 {
					return false
				}
				end = m.Decimal(quorum.Expiry(m.Time, left, l.engine.Late))
			}
			c.Set("EVALSHA", l.engine.Scripts.Note, "1", NotesKey(l.engine, id.Key), string(id.Token), text, end, engine.Flag(prolongs))
			return true
		},
	})
}
