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
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// daemonName is the name of this daemon in notes.
func daemonName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}

// notes are the notes that this daemon has written.
type notes struct {
	engine      *engine.Engine
	daemon      string // the name of this daemon
	everyHolder bool   // also of holders that give no text

	count atomic.Int64 // at 0 a release does not take the lock

	mu    sync.Mutex
	texts map[engine.LeaseID]storedNote
	sweep int // number of entries at which add removes those of lapsed leases
}

type storedNote struct {
	text  string
	until time.Duration // on the pool's clock: when the lease lapses
}

const minSweep = 1024

func (n *notes) add(id engine.LeaseID, one storedNote, now time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts == nil {
		n.texts = map[engine.LeaseID]storedNote{}
	}
	n.texts[id] = one
	if len(n.texts) > max(n.sweep, minSweep) {
		for id, old := range n.texts {
			if old.until < now {
				delete(n.texts, id)
			}
		}
		n.sweep = 2 * len(n.texts)
	}
	n.count.Store(int64(len(n.texts)))
}

// take removes a note and returns its text, "" if there is none.
func (n *notes) take(id engine.LeaseID) string {
	if n.count.Load() == 0 {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.texts[id].text
	delete(n.texts, id)
	n.count.Store(int64(len(n.texts)))
	return text
}

func (n *notes) find(id engine.LeaseID) (storedNote, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, ok := n.texts[id]
	return one, ok
}

// NotesKey is where the masters keep the notes of a key's holders.
func NotesKey(e *engine.Engine, k engine.Key) string { return e.KeyOf("meta:", k) }

// granted writes the notes of a new grant if its request gives a text or LockInfo is set. A
// lock without an expiry gets no note. Such a note would not end by itself: DEL, which
// names no token, or a release through another daemon would leave it behind.
func (n *notes) granted(r *LockRequest, g *Grant) {
	if r.Meta == "" && !n.everyHolder || r.TTL >= Endless {
		return
	}
	note := Note{Meta: r.Meta, Daemon: n.daemon, Fence: g.Fence}
	if r.Requester != nil {
		note.Client, note.Name = r.Requester.Addr, r.Requester.Name
	}
	text := note.encode()
	for _, key := range g.Keys() {
		n.write(engine.LeaseID{DB: g.db, Key: key, Token: g.Token}, storedNote{text, g.until})
	}
}

// prolong prolongs the notes of an extended lease.
func (n *notes) prolong(ids []engine.LeaseID, until time.Duration) {
	if n.count.Load() == 0 {
		return
	}
	for _, id := range ids {
		if one, ok := n.find(id); ok && one.until < until {
			n.write(id, storedNote{one.text, until})
		}
	}
}

func (n *notes) write(id engine.LeaseID, one storedNote) {
	n.add(id, one, n.engine.Recent())
	n.send(nil, id, one)
}

// drop drops the note of a lease that is being released.
func (n *notes) drop(b *engine.Batch, id engine.LeaseID) {
	if n.take(id) != "" {
		n.send(b, id, storedNote{})
	}
}

// send writes or drops a note on every master. It is not repeated on a master that does
// not answer: the note expires. It follows the acquire of its lock and precedes the release.
func (n *notes) send(b *engine.Batch, id engine.LeaseID, note storedNote) {
	n.engine.Submit(b, n.engine.Pool.Group(id.DB), &engine.Message{
		Plan: pool.Props{Key: n.engine.MasterKey(id.Key), SharesKey: true},
		Write: func(m *pool.SendContext, c *pool.Command) bool {
			end := "0"
			if note.text != "" {
				left := note.until - m.Now
				if left <= 0 {
					return false
				}
				end = m.Decimal(quorum.Expiry(m.Time, left, n.engine.Late))
			}
			c.Set("EVALSHA", n.engine.Scripts.Note, "1", NotesKey(n.engine, id.Key), string(id.Token), note.text, end)
			return true
		},
	})
}
