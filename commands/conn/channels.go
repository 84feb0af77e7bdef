// channels is the registry of the subscriptions of all connections, by database:
// the one that was selected when they were made. The events of a lock go to channel
// dlock:<key> as Redis' own messages, to users who may use the key. Registries of
// Spring Integration and clients of Redisson receive them in their own form (librarychannels.go).

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

type kind int

const (
	toChannel kind = iota
	toPattern
	kinds
)

// channelSubscriber is one connection with subscriptions. Its registry guards it.
type channelSubscriber struct {
	client *commands.Client
	unhook func()                // removes the hook of the connection's end
	user   string                // at the latest subscription
	names  [kinds]map[string]int // by the channel's name or the pattern: the database
}

// subscriberSet is the subscribers of one channel, or of one pattern.
type subscriberSet struct {
	pattern *glob.Pattern // nil for a channel
	members smallSet[*channelSubscriber]
}

// dbSubscriptions is the subscriptions to one database's locks.
type dbSubscriptions struct {
	sets [kinds]map[string]*subscriberSet // by the channel's name or the pattern
	end  func()                           // ends its events
}

type channels struct {
	events commands.Inspect
	users  *access.Users

	mu          sync.Mutex
	subscribers map[*commands.Client]*channelSubscriber
	dbs         map[int]*dbSubscriptions
}

// handlers serve the commands of this package.
type handlers struct {
	deps     commands.Deps
	channels channels
}

// subscribe subscribes a connection to channels and patterns, which have been
// checked and are the connection's own copies. A name that it is subscribed to
// already moves to its present database.
func (r *channels) subscribe(c *commands.Client, names []string, patterns []glob.Pattern) {
	s := r.subscriber(c)
	r.mu.Lock()
	defer r.mu.Unlock() // starting the events may panic, which costs the connection alone
	if r.subscribers[c] != s {
		return // the connection has ended meanwhile
	}
	s.user = c.User
	for _, name := range names {
		r.dropLocked(s, toChannel, name)
		if hasEvents(name) {
			r.addLocked(s, toChannel, name, nil)
		}
	}
	for _, pattern := range patterns {
		r.dropLocked(s, toPattern, pattern.Text)
		r.addLocked(s, toPattern, pattern.Text, &pattern)
	}
	r.sweepLocked()
}

// subscriber is the connection's entry. The connection's end removes it.
func (r *channels) subscriber(c *commands.Client) *channelSubscriber {
	r.mu.Lock()
	s := r.subscribers[c]
	isNew := s == nil
	if isNew {
		s = &channelSubscriber{client: c, names: [kinds]map[string]int{{}, {}}}
		if r.subscribers == nil {
			r.subscribers, r.dbs = map[*commands.Client]*channelSubscriber{}, map[int]*dbSubscriptions{}
		}
		r.subscribers[c] = s
	}
	r.mu.Unlock()
	if isNew { // if the connection has ended meanwhile, the hook runs at once
		unhook := c.OnClose.Add(func(error) { r.unsubscribeAll(c) })
		r.mu.Lock()
		s.unhook = unhook
		r.mu.Unlock()
	}
	return s
}

func (r *channels) unsubscribe(c *commands.Client, of kind, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.subscribers[c]; s != nil {
		for _, name := range names {
			r.dropLocked(s, of, name)
		}
		r.sweepLocked()
	}
}

func (r *channels) unsubscribeAll(c *commands.Client) {
	if unhook := r.remove(c); unhook != nil {
		unhook()
	}
}

func (r *channels) remove(c *commands.Client) (unhook func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.subscribers[c]
	if s == nil {
		return nil
	}
	delete(r.subscribers, c)
	for of := range kinds {
		for name := range s.names[of] {
			r.dropLocked(s, of, name)
		}
	}
	r.sweepLocked()
	return s.unhook
}

func (r *channels) addLocked(s *channelSubscriber, of kind, name string, pattern *glob.Pattern) {
	db := s.client.DB
	w := r.dbs[db]
	if w == nil { // the first one starts the events of the database
		w = &dbSubscriptions{sets: [kinds]map[string]*subscriberSet{{}, {}}}
		w.end = r.events.Listen(db, func(e redlock.Event) { r.publish(db, e) })
		r.dbs[db] = w
	}
	s.names[of][name] = db
	if w.sets[of][name] == nil {
		w.sets[of][name] = &subscriberSet{pattern: pattern}
	}
	w.sets[of][name].members.add(s)
}

func (r *channels) dropLocked(s *channelSubscriber, of kind, name string) {
	db, known := s.names[of][name]
	if !known {
		return
	}
	delete(s.names[of], name)
	if sets := r.dbs[db].sets[of]; sets[name].members.remove(s) {
		delete(sets, name)
	}
}

// sweepLocked ends the events of databases without subscriptions.
func (r *channels) sweepLocked() {
	for db, w := range r.dbs {
		if len(w.sets[toChannel])+len(w.sets[toPattern]) == 0 {
			delete(r.dbs, db)
			w.end()
		}
	}
}

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
		if a := w.sets[toChannel][channel]; a != nil {
			all = r.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(text))
		}
		for pattern, a := range w.sets[toPattern] {
			if a.pattern.Matches(channel) {
				all = r.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("pmessage"), commands.Bulk(pattern), commands.Bulk(channel), commands.Bulk(text))
			}
		}
		if endsLock(e.Kind) {
			all = r.redissonLocked(r.registriesLocked(all, w, may, e.Key), w, may, e.Key)
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
			who := r.users.Find(s.user) // at every event: a user may have been changed or removed since
			allowed = who.May(access.CategoryEvents) && who.MayUse(string(key))
			may[s.user] = allowed
		}
		if allowed {
			one.to = append(one.to, s.client)
		}
	}
	return append(all, one)
}

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

// maySubscribe reports whether the client may receive events of the locks it names.
func maySubscribe(c *commands.Call, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		key, isLock := strings.CutPrefix(name, channelPrefix)
		return isLock && !c.MayUse(key)
	})
}
