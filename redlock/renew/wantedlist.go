// This file passes requests to let go to the holders at other daemons, by a list on the masters.
//
// A request stands on the list of each master that has a copy of the lock, with the names of the
// holders there, until every lease ends that was there then. A daemon that holds something reads the
// lists of its masters once a second, notifies the holders that a request names, and puts its answer
// on the list. Of an answered request a quorum had the list, and no lease goes on without a quorum. So each
// holder is notified, or its lease ends without a renewal, whatever daemon or master was away meanwhile.
// The daemon that requests it waits for answers no longer than answerTime: it counts those that it has read.

package renew

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

const (
	// listInterval is the pause between two readings of the lists, and answerInterval that while a
	// request of this daemon waits for its answers.
	listInterval, answerInterval = time.Second, 50 * time.Millisecond
	// answerTime is how long a request waits for the answers of other daemons.
	answerTime = 2 * listInterval
	// nameLength is that of a holder's name in a request.
	nameLength = 8
)

// wantedLists are the lists of all databases, of the masters of this daemon.
type wantedLists struct {
	holds    *Holds
	name     string        // this daemon's
	patience time.Duration // answerTime, or longer in tests

	mu     sync.Mutex
	byDB   map[int]*wantedList
	number int64 // of the last request
}

// wantedList is the list of one database. wantedLists.mu guards it.
type wantedList struct {
	all     *wantedLists
	db      int
	key     string // on the masters
	timer   pool.Timer
	reading bool
	asked   map[string]*askedRequest  // of this daemon, without all answers
	known   map[string]map[string]int // requests of other daemons that were on a list lately: entries, and how many each notified
}

// askedRequest waits for the answers of other daemons.
type askedRequest struct {
	own, want int // connections of this daemon, and holders on the masters
	until     time.Duration
	done      func(int, error)
}

// wantedRequest is a request on a list.
type wantedRequest struct {
	id, names string
	revocation
}

// Revoke requests that the holders of a key let go, and answers how many connections were notified. A lock
// that is held here and can have no other holder costs the masters nothing.
func (hs *Holds) Revoke(db int, key engine.Key, text string, done func(int, error)) {
	if err := hs.engine.Enter(); err != nil {
		done(0, err)
		return
	}
	answered := func(n int, err error) {
		hs.engine.Leave()
		done(n, err)
	}
	key, text = engine.Key(strings.Clone(string(key))), strings.Clone(text)
	own, alone := hs.Wanted(db, key, text)
	group := hs.engine.Pool.Group(db)
	if alone || !group.Events.Carried {
		answered(own, nil)
		return
	}
	l := hs.lists.of(db)
	id := hs.lists.nextID(group.Time())
	before, behind := "? "+id+" ", fmt.Sprintf(" %d %s%s", len(key), key, text)
	l.put(key, before, behind, func(answers []pool.Answer) {
		var m engine.Missing
		want, n := 0, 0
		for lane := range answers {
			if a := &answers[lane]; a.Sent && a.Reply.Kind == pool.ReplyInt {
				m.MarkCounted(lane)
				want, n = max(want, int(a.Reply.Int)), n+1
			} else {
				m.MarkMissing(lane, hs.engine.Pool.Absence(a))
			}
		}
		switch {
		case n < hs.engine.Pool.Quorum():
			answered(0, hs.engine.NoQuorum(&m, fmt.Sprintf("%d connections of this daemon are notified, those of others may be", own)))
		case want <= own:
			answered(own, nil)
		default:
			l.await(id, &askedRequest{own: own, want: want, until: hs.engine.Clock.Now() + hs.lists.patience, done: answered})
		}
	})
}

// nextID names a request: no two of a daemon have the same.
func (w *wantedLists) nextID(now int64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number = max(w.number+1, now)
	return fmt.Sprintf("%d.%s", w.number, w.name)
}

func (w *wantedLists) of(db int) *wantedList {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.byDB[db]
	if l == nil {
		l = &wantedList{all: w, db: db, key: w.holds.engine.KeyOf("wanted", ""), asked: map[string]*askedRequest{}}
		if w.byDB == nil {
			w.byDB = map[int]*wantedList{}
		}
		w.byDB[db] = l
	}
	return l
}

// follow reads the lists of a database from now on, while this daemon holds something there.
func (w *wantedLists) follow(db int) {
	if !w.holds.engine.Pool.Group(db).Events.Carried { // there is no other daemon
		return
	}
	l := w.of(db)
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.timer == nil {
		l.timer = w.holds.engine.Clock.AfterFunc(listInterval, l.read)
	}
}

// put writes an entry on every master that has a copy of the lock. It precedes the release of a lock
// that is held through this daemon.
func (l *wantedList) put(key engine.Key, before, behind string, done func([]pool.Answer)) {
	e := l.all.holds.engine
	lock := e.MasterKey(key)
	e.Collect(nil, e.Pool.Group(l.db), pool.Props{Key: lock, SharesKey: true}, func(_ *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", e.Scripts.Wanted, "2", lock, l.key, before, behind)
	}, done)
}

// await waits for the answers to a request.
func (l *wantedList) await(id string, a *askedRequest) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.asked[id] = a
	switch {
	case l.timer == nil:
		l.timer = l.all.holds.engine.Clock.AfterFunc(answerInterval, l.read)
	case !l.reading:
		l.timer.Reset(answerInterval)
	}
}

// read reads the lists of all masters. There is one reading at a time.
func (l *wantedList) read() {
	s := l.all
	e := s.holds.engine
	s.mu.Lock()
	if l.reading {
		s.mu.Unlock()
		return
	}
	if len(l.asked) == 0 && !s.holds.in(l.db) {
		l.timer, l.known = nil, nil
		s.mu.Unlock()
		return
	}
	l.reading = true
	s.mu.Unlock()
	e.Collect(nil, e.Pool.Group(l.db), pool.Props{Key: l.key, SharesKey: true}, func(_ *pool.SendContext, c *pool.Command) {
		c.Set("ZRANGE", l.key, "0", "-1")
	}, l.onRead)
}

func (l *wantedList) onRead(lists []pool.Answer) {
	requests, answers := map[string]wantedRequest{}, map[string]map[string]int{}
	for lane := range lists {
		for _, item := range lists[lane].Reply.Items {
			if r, ok := parseRequest(item.Str); ok {
				requests[item.Str] = r
			} else if id, daemon, n, ok := parseAnswer(item.Str); ok {
				if answers[id] == nil {
					answers[id] = map[string]int{}
				}
				answers[id][daemon] = max(answers[id][daemon], n)
			}
		}
	}
	l.notify(requests, answers)
	l.settle(answers)
}

// notify passes on the requests of other daemons. An answer that is on no list is written again.
func (l *wantedList) notify(requests map[string]wantedRequest, answers map[string]map[string]int) {
	s := l.all
	known := map[string]map[string]int{}
	s.mu.Lock()
	former := l.known
	s.mu.Unlock()
	for entry, r := range requests {
		if strings.HasSuffix(r.id, "."+s.name) {
			continue
		}
		if known[r.id] == nil {
			known[r.id] = map[string]int{}
		}
		n, was := former[r.id][entry]
		var notified []*hold
		if !was {
			notified, n = s.holds.named(l.db, &r)
		}
		known[r.id][entry] = n
		total := 0
		for _, each := range known[r.id] {
			total += each
		}
		if total > answers[r.id][s.name] {
			l.put(r.key, fmt.Sprintf("! %s %s %d", r.id, s.name, total), "", func([]pool.Answer) {})
		}
		for _, h := range notified {
			h.onWanted(&r.revocation)
		}
	}
	s.mu.Lock()
	l.known = known
	s.mu.Unlock()
}

// settle answers the requests of this daemon that have all answers, or have waited for long enough.
func (l *wantedList) settle(answers map[string]map[string]int) {
	s := l.all
	now, pause := s.holds.engine.Clock.Now(), listInterval
	var settled []func()
	s.mu.Lock()
	for id, a := range l.asked {
		n := a.own
		for _, each := range answers[id] {
			n += each
		}
		if n < a.want && now < a.until {
			pause = answerInterval
			continue
		}
		delete(l.asked, id)
		settled = append(settled, func() { a.done(n, nil) })
	}
	l.reading = false
	l.timer.Reset(pause)
	s.mu.Unlock()
	for _, done := range settled {
		done()
	}
}

// in reports whether something is held in a database.
func (hs *Holds) in(db int) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for id := range hs.byID {
		if id.DB == db {
			return true
		}
	}
	return false
}

// named are the holds that a request names; those that have met it already are not notified again.
func (hs *Holds) named(db int, r *wantedRequest) (notified []*hold, n int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.ofLocked(engine.LeaseID{DB: db, Key: r.key}) {
		if h.met == r.id || !strings.Contains(r.names, holderName(h.grant.Token)) {
			continue
		}
		h.met = r.id
		n++
		if hs.wantedLocked(h, &r.revocation) {
			notified = append(notified, h)
		}
	}
	return notified, n
}

// holderName is a holder's name in a request, behind a comma.
func holderName(token engine.Token) string {
	sum := sha1.Sum([]byte(token))
	return "," + hex.EncodeToString(sum[:])[:nameLength]
}

// parseRequest reads "? id names length key text", with no space behind the key.
func parseRequest(entry string) (r wantedRequest, ok bool) {
	words := strings.SplitN(entry, " ", 5)
	if len(words) != 5 || words[0] != "?" {
		return r, false
	}
	length, err := strconv.Atoi(words[3])
	if err != nil || length < 0 || length > len(words[4]) {
		return r, false
	}
	return wantedRequest{words[1], words[2], revocation{engine.Key(words[4][:length]), words[4][length:]}}, true
}

// parseAnswer reads "! id daemon n".
func parseAnswer(entry string) (id, daemon string, n int, ok bool) {
	words := strings.Split(entry, " ")
	if len(words) != 4 || words[0] != "!" {
		return "", "", 0, false
	}
	n, err := strconv.Atoi(words[3])
	return words[1], words[2], n, err == nil && n > 0
}
