package pool

// Statuses shows every master as this database's lanes see it.
func (g *Group) Statuses() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	out := make([]Status, 0, len(g.lanes))
	for _, l := range g.lanes {
		s := Status{
			Name: l.master.Name, Address: l.master.Address,
			Since: now - l.since, Version: l.version,
			Queued: len(l.queue), Owed: len(l.owed),
		}
		if l.life != nil {
			s.RunID, s.Durable = l.life.RunID, l.life.Durable
		}
		s.State, s.Detail = l.describeLocked()
		out = append(out, s)
	}
	return out
}

func (l *lane) describeLocked() (state, detail string) {
	switch l.state {
	case stateDialing:
		return "dialing", ""
	case stateDown:
		return "down", l.cause.Error() + ", " + since(l.group.now()-l.since) + " ago"
	case stateRefused:
		return "refused", l.cause.Error()
	}
	if l.suspect != nil {
		return "suspect", "its clock does not fit"
	}
	if wait := l.quarantineLocked(); wait != "" {
		return "quarantined", wait
	}
	return "voting", ""
}
