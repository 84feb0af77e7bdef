// channels is the registry of the subscriptions of all connections, by database:
// the one that was selected when they were made. The events of a lock go to channel
// dlock:<key> as Redis' own messages, to users who may use the key. Registries of
// Spring Integration receive them in their own form (springchannel.go).

package commands

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlockd/redlock"
)

// channelPrefix stands before a lock's name in the name of its channel.
const channelPrefix = "dlock:"

// channelSubscriber is one connection with subscriptions. Its registry guards it.
type hearer struct {
	client   *Client
	tie      *tie
	user     string         // at the latest subscription
	channels map[string]int // by name: the database
	patterns map[string]int
}

// subscriberSet is the subscribers of one channel, or of one pattern.
type audience struct {
	pattern glob
	who     map[*hearer]struct{}
}

// dbSubscriptions is the subscriptions to one database's locks.
type wing struct {
	channels map[string]*audience
	patterns map[string]*audience
	end      func() // ends its events
}

// channels is the registry. The zero value sends no events.
type channels struct {
	events Events // nil: subscriptions are confirmed, and receive nothing
	users  *Users

	mu      sync.Mutex
	hearers map[*Client]*hearer
	wings   map[int]*wing
}

// subscribe subscribes a connection to channels and patterns, which have been
// checked and are the connection's own copies. A name that it is subscribed to
// already moves to its present database.
func (r *channels) enter(c *Client, names []string, patterns []glob) {
	if r.events == nil || c.Push == nil {
		return
	}
	r.mu.Lock()
	s := r.hearers[c]
	isNew := s == nil
	if isNew {
		s = &hearer{client: c, channels: map[string]int{}, patterns: map[string]int{}}
		if r.hearers == nil {
			r.hearers, r.wings = map[*Client]*hearer{}, map[int]*wing{}
		}
		r.hearers[c] = s
	}
	s.user = c.User
	for _, name := range names {
		r.dropLocked(s, name, s.channels, (*wing).ofChannels)
		if isHeard(name) {
			s.channels[name] = c.DB
			r.wingLocked(c.DB).ofChannels().add(name, glob{}, s)
		}
	}
	for _, pattern := range patterns {
		r.dropLocked(s, pattern.text, s.patterns, (*wing).ofPatterns)
		s.patterns[pattern.text] = c.DB
		r.wingLocked(c.DB).ofPatterns().add(pattern.text, pattern, s)
	}
	r.sweepLocked()
	r.mu.Unlock()
	if !isNew {
		return
	}
	// If the connection has ended meanwhile, the hook runs at once.
	hook := c.Ties.tie(func(error) { r.leave(c) })
	r.mu.Lock()
	s.tie = hook
	r.mu.Unlock()
}

// unsubscribe ends some of a connection's subscriptions.
func (r *channels) exit(c *Client, names, patterns []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.hearers[c]
	if s == nil {
		return
	}
	for _, name := range names {
		r.dropLocked(s, name, s.channels, (*wing).ofChannels)
	}
	for _, pattern := range patterns {
		r.dropLocked(s, pattern, s.patterns, (*wing).ofPatterns)
	}
	r.sweepLocked()
}

// unsubscribeAll ends all of them.
func (r *channels) leave(c *Client) {
	r.mu.Lock()
	s := r.hearers[c]
	if s == nil {
		r.mu.Unlock()
		return
	}
	delete(r.hearers, c)
	for name := range s.channels {
		r.dropLocked(s, name, s.channels, (*wing).ofChannels)
	}
	for pattern := range s.patterns {
		r.dropLocked(s, pattern, s.patterns, (*wing).ofPatterns)
	}
	r.sweepLocked()
	hook := s.tie
	r.mu.Unlock()
	if hook != nil {
		c.Ties.untie(hook)
	}
}

// dbLocked returns a database's subscriptions; the first call starts its events.
func (r *channels) wingLocked(db int) *wing {
	w := r.wings[db]
	if w == nil {
		w = &wing{channels: map[string]*audience{}, patterns: map[string]*audience{}}
		r.wings[db] = w
		w.end = r.events.Listen(db, func(e redlock.Event) { r.tell(db, e) })
	}
	return w
}

// sweepLocked ends the events of databases without subscriptions.
func (r *channels) sweepLocked() {
	for db, w := range r.wings {
		if len(w.channels)+len(w.patterns) == 0 {
			delete(r.wings, db)
			w.end()
		}
	}
}

func (r *channels) dropLocked(s *hearer, name string, databases map[string]int, side func(*wing) audiences) {
	db, known := databases[name]
	if !known {
		return
	}
	delete(databases, name)
	all := side(r.wings[db])
	if a := all[name]; a != nil {
		if delete(a.who, s); len(a.who) == 0 {
			delete(all, name)
		}
	}
}

// subscriberSets is by the name of the channel, or by the pattern.
type audiences map[string]*audience

func (w *wing) ofChannels() audiences { return w.channels }
func (w *wing) ofPatterns() audiences { return w.patterns }

func (all audiences) add(name string, pattern glob, s *hearer) {
	a := all[name]
	if a == nil {
		a = &audience{pattern: pattern, who: map[*hearer]struct{}{}}
		all[name] = a
	}
	a.who[s] = struct{}{}
}

// delivery is a message and its recipients.
type parcel struct {
	message Reply
	to      []*Client
}

// publish sends an event to every subscriber. It sends without the lock: a client
// that is closed because it does not read leaves the registry.
func (r *channels) tell(db int, e redlock.Event) {
	channel, text := channelPrefix+string(e.Key), e.Text()
	may := map[string]bool{} // checks each user once, not once for each subscription
	var all []parcel
	r.mu.Lock()
	if w := r.wings[db]; w != nil {
		if a := w.channels[channel]; a != nil {
			all = r.addressLocked(all, a, may, e.Key, Bulk("message"), Bulk(channel), Bulk(text))
		}
		for pattern, a := range w.patterns {
			if a.pattern.matches(channel) {
				all = r.addressLocked(all, a, may, e.Key, Bulk("pmessage"), Bulk(pattern), Bulk(channel), Bulk(text))
			}
		}
		if ends(e.Kind) {
			all = r.registriesLocked(all, w, may, e.Key)
		}
	}
	r.mu.Unlock()
	for _, one := range all {
		for _, c := range one.to {
			c.Push(one.message, true)
		}
	}
}

func (r *channels) addressLocked(all []parcel, a *audience, may map[string]bool, key redlock.Key, words ...Reply) []parcel {
	one := parcel{message: Reply{Kind: KindPush, Items: words}}
	for s := range a.who {
		allowed, known := may[s.user]
		if !known {
			allowed = r.mayHear(s.user, string(key))
			may[s.user] = allowed
		}
		if allowed {
			one.to = append(one.to, s.client)
		}
	}
	return append(all, one)
}

// mayReceive is checked at every event: a user may have been changed or removed since.
func (r *channels) mayHear(user, key string) bool {
	if r.users == nil {
		return true
	}
	who := r.users.find(user)
	return who != nil && who.may(categoryEvents) && who.mayUse(key)
}

// readPatterns reads the patterns of PSUBSCRIBE.
func readPatterns(texts []string) ([]glob, error) {
	patterns := make([]glob, 0, len(texts))
	for _, text := range texts {
		pattern, err := newChannelPattern(text)
		if err != nil {
			return nil, fmt.Errorf("pattern '%s' %w", clip(text, shownBytes), err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// forgetChannels ends all subscriptions of a connection, as RESET does.
func (t *Table) forgetChannels(c *Client) {
	c.channels, c.patterns = subscriptions{}, subscriptions{}
	t.channels.leave(c)
}

// maySubscribe reports whether the client may receive events of the locks it names.
func (t *Table) mayListen(c *Client, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		key, isLock := strings.CutPrefix(name, channelPrefix)
		return isLock && !t.mayUse(c, key)
	})
}
