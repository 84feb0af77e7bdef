// What people are told about a holder: the text it gave, through which daemon it
// came, who it was.
//
// Nothing rests on these notes. They are kept on the masters, so that every
// daemon can show them, under a key of their own beside the lock: a hash with an
// entry for each holder. Who gives no text pays nothing, unless LockInfo has every
// holder of a lease noted. A note is written after the grant, goes with the release
// through the same daemon, is moved on when the lease is extended through it, and
// otherwise ends when the lease does.
package redlock

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// Note is what is known of a holder.
type Note struct {
	Meta   string // the text it gave
	Daemon string // through which it came
	Client string // its address there
	Name   string // its connection's name
	Fence  Fence
}

// encode writes a note as words, the text last: it may hold any byte.
func (n *Note) encode() string {
	return strings.Join([]string{
		strconv.FormatInt(int64(n.Fence), 10), url.QueryEscape(n.Daemon), url.QueryEscape(n.Client), url.QueryEscape(n.Name), n.Meta,
	}, " ")
}

// parseNote reads a note; nil if there is none.
func parseNote(text string) *Note {
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
	return &Note{Fence: Fence(fence), Daemon: words[1], Client: words[2], Name: words[3], Meta: words[4]}
}

// daemonName is how this daemon is called in notes.
func daemonName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}

// notes are those that this daemon has written.
type notes struct {
	count atomic.Int64 // 0 lets every release pass without a look

	mu    sync.Mutex
	texts map[lockID]noted
	sweep int // entries at which those of lapsed leases are looked for
}

type noted struct {
	text  string
	until time.Duration // on the pool's clock: the lease lapses
}

const leastSweep = 1024

func (n *notes) add(id lockID, one noted, now time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts == nil {
		n.texts = map[lockID]noted{}
	}
	n.texts[id] = one
	if len(n.texts) > max(n.sweep, leastSweep) {
		for id, old := range n.texts {
			if old.until < now {
				delete(n.texts, id)
			}
		}
		n.sweep = 2 * len(n.texts)
	}
	n.count.Store(int64(len(n.texts)))
}

// take removes and returns a note, "" if there is none.
func (n *notes) take(id lockID) string {
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

func (n *notes) find(id lockID) (noted, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, ok := n.texts[id]
	return one, ok
}

func (l *Locker) notesKey(k Key) string { return l.options.KeyPrefix + "redlockd:meta:" + string(k) }

// describe notes whose a new grant is, if its request has something to tell. Of a
// lock without an expiry there is no note: it would not end by itself, and DEL, which
// names no token, or a release through another daemon leaves it behind.
func (l *Locker) describe(r *LockRequest, g *Grant) {
	if r.Meta == "" && !l.options.LockInfo || r.TTL >= Endless {
		return
	}
	note := Note{Meta: r.Meta, Daemon: l.daemon, Fence: g.Fence}
	if r.Who != nil {
		note.Client, note.Name = r.Who.Addr, r.Who.Name
	}
	text := note.encode()
	for _, key := range g.Keys() {
		l.writeNote(lockID{g.db, key, g.Token}, noted{text, g.until})
	}
}

// redescribe moves the notes of an extended lease on.
func (l *Locker) redescribe(ids []lockID, until time.Duration) {
	if l.notes.count.Load() == 0 {
		return
	}
	for _, id := range ids {
		if one, ok := l.notes.find(id); ok && one.until < until {
			l.writeNote(id, noted{one.text, until})
		}
	}
}

func (l *Locker) writeNote(id lockID, one noted) {
	l.notes.add(id, one, l.recent())
	l.submit(nil, l.pool.Group(id.db), &noting{locker: l, id: id, note: one})
}

// undescribe drops the note of a lease that is being released.
func (l *Locker) undescribe(b *Batch, id lockID) {
	if l.notes.take(id) == "" {
		return
	}
	l.submit(b, l.pool.Group(id.db), &noting{locker: l, id: id})
}

// noting writes or drops a note on every master. What a master does not answer
// is not repeated: it expires.
type noting struct {
	locker *Locker
	id     lockID
	note   noted
}

var _ pool.Operation = (*noting)(nil)

// Plan: it follows the acquire and comes before the release of its lock.
func (n *noting) Plan() pool.Plan {
	return pool.Plan{Key: n.locker.masterKey(n.id.key), Joins: true}
}

// Propose: a note has no fence.
func (n *noting) Propose(int64) {}

func (n *noting) Command(m *pool.Moment, c *pool.Command) bool {
	l, end := n.locker, "0"
	if n.note.text != "" {
		left := n.note.until - m.Now
		if left <= 0 {
			return false
		}
		end = m.Decimal(expiry(m.Time, left, l.late))
	}
	c.Set("EVALSHA", l.script.note, "1", l.notesKey(n.id.key), string(n.id.token), n.note.text, end)
	return true
}

func (n *noting) Answer(pool.Answer) {}

// Shown is how a token may be shown: it proves ownership and is a secret, eight
// hex digits of its hash only tell two of them apart.
func (t Token) Shown() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:4])
}
