package sim

import (
	"context"
	"slices"

	"redlockd/pool"
)

// Announcements of changed keys, from masters to the connections that subscribed: CLIENT
// TRACKING in OPTIN mode, as pool/notify/tracker.go uses it. In some scenarios they are lost or
// late.

// track is the daemon's TrackDialer.
func (d *daemon) track(ctx context.Context, m pool.Master, db int, gone func(keys []string)) (pool.Link, error) {
	if !d.world.Scenario.Announcements {
		return nil, errRefused // masters without tracking, or without the right to it
	}
	l, err := d.dial(ctx, m, db)
	if err != nil {
		return nil, err
	}
	l.(*simLink).onKeys = gone
	return l, nil
}

// tracks notes that a connection subscribes to the key that it has read.
func (s *server) tracks(l *simLink, command []string) {
	if !l.caching || command[0] != "PTTL" {
		return
	}
	key := command[1]
	l.caching = false
	if !slices.Contains(s.tracked[key], l) {
		s.tracked[key] = append(s.tracked[key], l)
	}
	if !slices.Contains(l.trackedKeys, key) {
		l.trackedKeys = append(l.trackedKeys, key)
	}
}

// announce sends once that a key has changed or expired.
func (s *server) announce(key string) {
	w := s.world
	w.observer.touched(key)
	for _, l := range s.tracked[key] {
		if l.severed || l.broken != nil || w.chance(w.Scenario.AnnouncementsLost) {
			continue
		}
		delay := l.latency()
		if w.chance(w.Scenario.AnnouncementsLate) {
			delay += w.between(0, masterTimeout*4)
		}
		if until := l.daemon.blocked[s]; until > w.now {
			delay += until - w.now
		}
		w.after(delay, l.daemon, func() {
			if l.broken == nil {
				l.onKeys([]string{key})
			}
		})
	}
	delete(s.tracked, key)
}

// stopTracking is called when a connection for announcements has ended: any key may have
// changed. The keys are named one by one, in an order, so that a world can be played again.
func (l *simLink) stopTracking() {
	if l.onKeys != nil && l.daemon != nil {
		l.world.after(0, l.daemon, func() { l.onKeys(slices.Clone(l.trackedKeys)) })
	}
}
