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
func (cs *channels) subscribe(c *commands.Client, names []string, patterns []glob.Pattern) {
	s := cs.subscriber(c)
	cs.mu.Lock()
	defer cs.mu.Unlock() // starting the events may panic, which costs the connection alone
	if cs.subscribers[c] != s {
		return // the connection has ended meanwhile
	}
	s.user = c.User
	for _, name := range names {
		cs.dropLocked(s, toChannel, name)
		if hasEvents(name) {
			cs.addLocked(s, toChannel, name, nil)
		}
	}
	for _, pattern := range patterns {
		cs.dropLocked(s, toPattern, pattern.Text)
		cs.addLocked(s, toPattern, pattern.Text, &pattern)
	}
	cs.sweepLocked()
}

// subscriber is the connection's entry. The connection's end removes it.
func (cs *channels) subscriber(c *commands.Client) *channelSubscriber {
	cs.mu.Lock()
	s := cs.subscribers[c]
	isNew := s == nil
	if isNew {
		s = &channelSubscriber{client: c, names: [kinds]map[string]int{{}, {}}}
		if cs.subscribers == nil {
			cs.subscribers, cs.dbs = map[*commands.Client]*channelSubscriber{}, map[int]*dbSubscriptions{}
		}
		cs.subscribers[c] = s
	}
	cs.mu.Unlock()
	if isNew { // if the connection has ended meanwhile, the hook runs at once
		unhook := c.OnClose.Add(func(error) { cs.unsubscribeAll(c) })
		cs.mu.Lock()
		s.unhook = unhook
		cs.mu.Unlock()
	}
	return s
}

func (cs *channels) unsubscribe(c *commands.Client, of kind, names []string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if s := cs.subscribers[c]; s != nil {
		for _, name := range names {
			cs.dropLocked(s, of, name)
		}
		cs.sweepLocked()
	}
}

func (cs *channels) unsubscribeAll(c *commands.Client) {
	if unhook := cs.remove(c); unhook != nil {
		unhook()
	}
}

func (cs *channels) remove(c *commands.Client) (unhook func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	s := cs.subscribers[c]
	if s == nil {
		return nil
	}
	delete(cs.subscribers, c)
	for of := range kinds {
		for name := range s.names[of] {
			cs.dropLocked(s, of, name)
		}
	}
	cs.sweepLocked()
	return s.unhook
}

func (cs *channels) addLocked(s *channelSubscriber, of kind, name string, pattern *glob.Pattern) {
	db := s.client.DB
	w := cs.dbs[db]
	if w == nil { // the first one starts the events of the database
		w = &dbSubscriptions{sets: [kinds]map[string]*subscriberSet{{}, {}}}
		w.end = cs.events.Listen(db, func(e redlock.Event) { cs.publish(db, e) })
		cs.dbs[db] = w
	}
	s.names[of][name] = db
	if w.sets[of][name] == nil {
		w.sets[of][name] = &subscriberSet{pattern: pattern}
	}
	w.sets[of][name].members.add(s)
}

func (cs *channels) dropLocked(s *channelSubscriber, of kind, name string) {
	db, known := s.names[of][name]
	if !known {
		return
	}
	delete(s.names[of], name)
	if sets := cs.dbs[db].sets[of]; sets[name].members.remove(s) {
		delete(sets, name)
	}
}

// sweepLocked ends the events of databases without subscriptions.
func (cs *channels) sweepLocked() {
	for db, w := range cs.dbs {
		if len(w.sets[toChannel])+len(w.sets[toPattern]) == 0 {
			delete(cs.dbs, db)
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
func (cs *channels) publish(db int, e redlock.Event) {
	channel, text := channelPrefix+string(e.Key), e.Text()
	may := map[string]bool{} // checks each user once, not once for each subscription
	var all []delivery
	cs.mu.Lock()
	if w := cs.dbs[db]; w != nil {
		if a := w.sets[toChannel][channel]; a != nil {
			all = cs.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("message"), commands.Bulk(channel), commands.Bulk(text))
		}
		for pattern, a := range w.sets[toPattern] {
			if a.pattern.Matches(channel) {
				all = cs.addRecipientsLocked(all, a, may, e.Key, commands.Bulk("pmessage"), commands.Bulk(pattern), commands.Bulk(channel), commands.Bulk(text))
			}
		}
		if endsLock(e.Kind) {
			all = cs.redissonLocked(cs.registriesLocked(all, w, may, e.Key), w, may, e.Key)
		}
	}
	cs.mu.Unlock()
	for _, one := range all {
		for _, c := range one.to {
			c.Push(one.message, true)
		}
	}
}

func (cs *channels) addRecipientsLocked(all []delivery, a *subscriberSet, may map[string]bool, key redlock.Key, words ...commands.Reply) []delivery {
	one := delivery{message: commands.Reply{Kind: commands.KindPush, Items: words}}
	for s := range a.members.all {
		allowed, known := may[s.user]
		if !known {
			who := cs.users.Find(s.user) // at every event: a user may have been changed or removed since
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
