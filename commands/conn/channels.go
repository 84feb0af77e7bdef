// channels is the registry of the subscriptions of all connections, by database:
// the one that was selected when they were made. The events of a lock go to channel
// dlock:<key> as Redis' own messages, to users who may use the key. Registries of
// Spring Integration receive them in their own form (springchannel.go).

package conn

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/glob"
	"redlockd/redlock"
)

// channelPrefix stands before a lock's name in the name of its channel.
const channelPrefix = "dlock:"

// channelSubscriber is one connection with subscriptions. Its registry guards it.
type channelSubscriber struct {
	client   *commands.Client
	unhook   func()         // removes the hook of the connection's end
	user     string         // at the latest subscription
	channels map[string]int // by name: the database
	patterns map[string]int
}

// subscriberSet is the subscribers of one channel, or of one pattern.
type subscriberSet struct {
	pattern *glob.Pattern // nil for a channel
	members smallSet[*channelSubscriber]
}

// dbSubscriptions is the subscriptions to one database's locks.
type dbSubscriptions struct {
	channels map[string]*subscriberSet
	patterns map[string]*subscriberSet
	end      func() // ends its events
}

// channels is the registry. The zero value sends no events.
type channels struct {
	events commands.Inspect // nil: subscriptions are confirmed, and receive nothing
	users  *access.Users

	mu          sync.Mutex
	subscribers map[*commands.Client]*channelSubscriber
	dbs         map[int]*dbSubscriptions
}

// subscribe subscribes a connection to channels and patterns, which have been
// checked and are the connection's own copies. A name that it is subscribed to
// already moves to its present database.
func (r *channels) subscribe(c *commands.Client, names []string, patterns []glob.Pattern) {
	if r.events == nil || c.Push == nil {
		return
	}
	r.mu.Lock()
	s := r.subscribers[c]
	isNew := s == nil
	if isNew {
		s = &channelSubscriber{client: c, channels: map[string]int{}, patterns: map[string]int{}}
		if r.subscribers == nil {
			r.subscribers, r.dbs = map[*commands.Client]*channelSubscriber{}, map[int]*dbSubscriptions{}
		}
		r.subscribers[c] = s
	}
	s.user = c.User
	for _, name := range names {
		r.dropLocked(s, name, s.channels, (*dbSubscriptions).ofChannels)
		if hasEvents(name) {
			s.channels[name] = c.DB
			r.dbLocked(c.DB).ofChannels().add(name, nil, s)
		}
	}
	for _, pattern := range patterns {
		r.dropLocked(s, pattern.Text, s.patterns, (*dbSubscriptions).ofPatterns)
		s.patterns[pattern.Text] = c.DB
		r.dbLocked(c.DB).ofPatterns().add(pattern.Text, &pattern, s)
	}
	r.sweepLocked()
	r.mu.Unlock()
	if !isNew {
		return
	}
	// If the connection has ended meanwhile, the hook runs at once.
	unhook := c.OnClose.Add(func(error) { r.unsubscribeAll(c) })
	r.mu.Lock()
	s.unhook = unhook
	r.mu.Unlock()
}

// unsubscribe ends some of a connection's subscriptions.
func (r *channels) unsubscribe(c *commands.Client, names, patterns []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.subscribers[c]
	if s == nil {
		return
	}
	for _, name := range names {
		r.dropLocked(s, name, s.channels, (*dbSubscriptions).ofChannels)
	}
	for _, pattern := range patterns {
		r.dropLocked(s, pattern, s.patterns, (*dbSubscriptions).ofPatterns)
	}
	r.sweepLocked()
}

// unsubscribeAll ends all of them.
func (r *channels) unsubscribeAll(c *commands.Client) {
	r.mu.Lock()
	s := r.subscribers[c]
	if s == nil {
		r.mu.Unlock()
		return
	}
	delete(r.subscribers, c)
	for name := range s.channels {
		r.dropLocked(s, name, s.channels, (*dbSubscriptions).ofChannels)
	}
	for pattern := range s.patterns {
		r.dropLocked(s, pattern, s.patterns, (*dbSubscriptions).ofPatterns)
	}
	r.sweepLocked()
	unhook := s.unhook
	r.mu.Unlock()
	if unhook != nil {
		unhook()
	}
}

// dbLocked returns a database's subscriptions; the first call starts its events.
func (r *channels) dbLocked(db int) *dbSubscriptions {
	w := r.dbs[db]
	if w == nil {
		w = &dbSubscriptions{channels: map[string]*subscriberSet{}, patterns: map[string]*subscriberSet{}}
		r.dbs[db] = w
		w.end = r.events.Listen(db, func(e redlock.Event) { r.publish(db, e) })
	}
	return w
}

// sweepLocked ends the events of databases without subscriptions.
func (r *channels) sweepLocked() {
	for db, w := range r.dbs {
		if len(w.channels)+len(w.patterns) == 0 {
			delete(r.dbs, db)
			w.end()
		}
	}
}

func (r *channels) dropLocked(s *channelSubscriber, name string, databases map[string]int, side func(*dbSubscriptions) subscriberSets) {
	db, known := databases[name]
	if !known {
		return
	}
	delete(databases, name)
	all := side(r.dbs[db])
	if a := all[name]; a != nil {
		if a.members.remove(s) {
			delete(all, name)
		}
	}
}

// subscriberSets is by the name of the channel, or by the pattern.
type subscriberSets map[string]*subscriberSet

func (w *dbSubscriptions) ofChannels() subscriberSets { return w.channels }
func (w *dbSubscriptions) ofPatterns() subscriberSets { return w.patterns }

func (all subscriberSets) add(name string, pattern *glob.Pattern, s *channelSubscriber) {
	a := all[name]
	if a == nil {
		a = &subscriberSet{pattern: pattern}
		all[name] = a
	}
	a.members.add(s)
}

// delivery is a message and its recipients.
type delivery struct {
	message commands.Reply
	to      []*commands.Client
}

// publish sends an event to every subscriber. It sends without the lock: a client
// that is closed because it does not read leaves the registry.
func (r *channels) publish(db int, e redlock.Event) {
	channel, text := channelPrefix+string(e.Key), e.Text()
	may := map[string]bool{} // checks each user once, not once for each subscription
	var all []delivery
	r.mu.Lock()
	if w := r.dbs[db]; w != nil {
		if a := w.channels[channel]; a != nil {
			all = r.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(text))
		}
		for pattern, a := range w.patterns {
			if a.pattern.Matches(channel) {
				all = r.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("pmessage"), commands.Bulk(pattern), commands.Bulk(channel), commands.Bulk(text))
			}
		}
		if endsLock(e.Kind) {
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

func (r *channels) addRecipientsLocked(all []delivery, a *subscriberSet, may map[string]bool, key redlock.Key, words ...commands.Reply) []delivery {
	one := delivery{message: commands.Reply{Kind: commands.KindPush, Items: words}}
	for s := range a.members.all {
		allowed, known := may[s.user]
		if !known {
			allowed = r.mayReceive(s.user, string(key))
			may[s.user] = allowed
		}
		if allowed {
			one.to = append(one.to, s.client)
		}
	}
	return append(all, one)
}

// mayReceive is checked at every event: a user may have been changed or removed since.
func (r *channels) mayReceive(user, key string) bool {
	if r.users == nil {
		return true
	}
	who := r.users.Find(user)
	return who != nil && who.May(access.CategoryEvents) && who.MayUse(key)
}

// readPatterns reads the patterns of PSUBSCRIBE.
func readPatterns(texts []string) ([]glob.Pattern, error) {
	patterns := make([]glob.Pattern, 0, len(texts))
	for _, text := range texts {
		pattern, err := glob.NewChannel(text)
		if err != nil {
			return nil, fmt.Errorf("pattern '%s' %w", commands.Clip(text, commands.ShownBytes), err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// forgetChannels ends all subscriptions of a connection, as RESET does.
func (h *handlers) forgetChannels(c *commands.Client) {
	c.Channels, c.Patterns = commands.Subscriptions{}, commands.Subscriptions{}
	h.channels.unsubscribeAll(c)
}

// maySubscribe reports whether the client may receive events of the locks it names.
func maySubscribe(c *commands.Call, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		key, isLock := strings.CutPrefix(name, channelPrefix)
		return isLock && !c.MayUse(key)
	})
}
