// Notes about lock holders, for people: the text that a holder gave, the
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
	"net/url"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// Note describes one holder.
type Note struct {
	Meta   string // the text that the holder gave
	Daemon string // the daemon that the holder came through
	Client string // the client's address at that daemon
	Name   string // the connection's name
	Fence  engine.Fence

	// User and Library are what the daemon that granted the lock has in its memory; they are not stored.
	User, Library string
}

// Took notes the client that took the lock through a daemon.
func (n *Note) Took(daemon string, r *Requester) {
	n.Daemon, n.Client, n.Name, n.User = daemon, r.Addr, r.Name, r.User
	n.Library = strings.TrimSpace(r.LibName + " " + r.LibVer)
}

// encode writes a note as words. The text comes last, because it may hold any byte.
func (n *Note) encode() string {
	return strings.Join([]string{
		strconv.FormatInt(int64(n.Fence), 10), url.QueryEscape(n.Daemon), url.QueryEscape(n.Client), url.QueryEscape(n.Name), n.Meta,
	}, " ")
}

// ParseNote reads a note; nil if there is none.
func ParseNote(text string) *Note {
	words := strings.SplitN(text, " ", 5)
	if len(words) != 5 {
		return nil
	}
	fence, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return nil
	}
	for i := range words[1:4] {
		if words[i+1], err = url.QueryUnescape(words[i+1]); err != nil {
			return nil
		}
	}
	return &Note{Fence: engine.Fence(fence), Daemon: words[1], Client: words[2], Name: words[3], Meta: words[4]}
}

// NotesKey is where the masters keep the notes of a key's holders.
func NotesKey(e *engine.Engine, k engine.Key) string { return e.KeyOf("meta:", k) }

// notes writes notes on the masters.
type notes struct {
	engine      *engine.Engine
	records     *leaseRecords
	daemon      string // the name of this daemon
	everyHolder bool   // has a note, also one that gives no text
}

// of is the note of a new grant if its request gives a text or LockInfo is set. A lock
// without an expiry gets no note. Such a note would not end by itself: DEL, which names no
// token, or a release through another daemon would leave it behind.
func (n *notes) of(r *LockRequest, fence engine.Fence) string {
	if r.Meta() == "" && !n.everyHolder || r.TTL >= Endless {
		return ""
	}
	note := Note{Meta: r.Meta(), Daemon: n.daemon, Fence: fence}
	if r.Requester != nil {
		note.Took(n.daemon, r.Requester)
	}
	return note.encode()
}

// ReplaceNote replaces the note of a holder whose lease lasts for left.
func (l *Leases) ReplaceNote(id engine.LeaseID, n Note, left time.Duration) {
	text := n.encode()
	l.records.update(id, func(known *leaseRecord) { known.about = text })
	l.ofDaemon().notes.send(nil, id, text, l.engine.Clock.Now()+left, false)
}

var _ observer = (*notes)(nil)

// changed keeps the note of a holder on every master until its lease lapses. One that is prolonged
// stays as it is: it may have been replaced through another daemon.
func (n *notes) changed(c change, id engine.LeaseID, known leaseRecord, until, _ time.Duration, r *LockRequest) {
	switch {
	case c == acquired:
		if text := n.of(r, known.fence); text != "" {
			n.records.update(id, func(known *leaseRecord) { known.about = text })
			n.send(nil, id, text, until+known.linger, false)
		}
	case c == extended && known.about != "" && known.until < until:
		n.send(nil, id, known.about, until+known.linger, true)
	}
}

// ends drops the note of a lease that is being released.
func (n *notes) ends(b *engine.Batch, id engine.LeaseID, known leaseRecord) {
	if known.about != "" {
		n.send(b, id, "", 0, false)
	}
}

// send writes or drops a note on every master. It is not repeated on a master that does
// not answer: the note expires. It follows the acquire of its lock and precedes the release.
func (n *notes) send(b *engine.Batch, id engine.LeaseID, text string, until time.Duration, prolongs bool) {
	n.engine.Submit(b, n.engine.Pool.Group(id.DB), &engine.Message{
		Plan: pool.Props{Key: n.engine.MasterKey(id.Key), SharesKey: true},
		Write: func(m *pool.SendContext, c *pool.Command) bool {
			end := "0"
			if text != "" {
				left := until - m.Now
				if left <= 0 {
					return false
				}
				end = m.Decimal(quorum.Expiry(m.Time, left, n.engine.Late))
			}
			c.Set("EVALSHA", n.engine.Scripts.Note, "1", NotesKey(n.engine, id.Key), string(id.Token), text, end, engine.Flag(prolongs))
			return true
		},
	})
}

// Meta is the text that the request's holder gives.
func (r *LockRequest) Meta() string {
	if r.Requester == nil {
		return ""
	}
	return r.Requester.Meta
}

// WithMeta is the client with the text that it gives for one request.
func (r *Requester) WithMeta(text string) *Requester {
	if text == "" {
		return r
	}
	client := *r
	client.Meta = text
	return &client
}
