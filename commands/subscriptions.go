// subscriptions are the channels or the patterns that one connection has
// subscribed to, in the order in which it did. Adding and removing one costs the same,
// however many there are.

package commands

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// subscriptionCost is what a channel takes beside its name, here and in the
	// registry; a test measures it.
	subscriptionCost = 260
	// patternCost is the same with the table of a pattern.
	patternCost = subscriptionCost + 2<<10
)

type Subscriptions struct {
	byName map[string]channelSubscription
	last   int // sequence of the latest
	Bytes  int // of the names
}

type channelSubscription struct {
	name     string // the connection's own copy
	sequence int
}

// Add returns the connection's own copy of the name, so that no subscription keeps
// the buffer of its command.
func (s *Subscriptions) Add(name string) string {
	if one, ok := s.byName[name]; ok {
		return one.name
	}
	if s.byName == nil {
		s.byName = make(map[string]channelSubscription)
	}
	name = strings.Clone(name)
	s.last++
	s.byName[name] = channelSubscription{name, s.last}
	s.Bytes += len(name)
	return name
}

func (s *Subscriptions) Len() int { return len(s.byName) }

func (s *Subscriptions) Has(name string) bool {
	_, ok := s.byName[name]
	return ok
}

func (s *Subscriptions) Remove(name string) {
	if one, ok := s.byName[name]; ok {
		s.Bytes -= len(one.name)
		delete(s.byName, one.name)
	}
}

func (s *Subscriptions) InOrder() []string {
	all := slices.SortedFunc(maps.Values(s.byName), func(a, b channelSubscription) int { return cmp.Compare(a.sequence, b.sequence) })
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}
