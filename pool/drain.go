// Draining: how a master goes out of service without surprises.
//
// A master that is being drained receives nothing new: no lock, no ticket of a fair
// queue, no attempt at work, no ids, and lost copies are not made again there. To these
// operations it is absent, as a stopped master is, and whatever is right with a minority
// stopped is right without its votes. What it already holds stays valid: releases, undos
// and extensions reach it, and an extension makes copies there that the others lack. So
// once the longest lease is over, every lock that has a copy there has one on a quorum of
// the others, too. An attempt at work is different: it is extended on its own masters and
// nowhere else, so while its worker extends it, it stays on the masters that gave it.
//
// A drain concerns the commands of one daemon and ends with its process.

package pool

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Drain sends a master nothing new, in all databases; if it is being drained
// already, nothing changes. The error is *NoMaster, or why the others are too few.
func (p *Pool) Drain(name string) error {
	p.mu.Lock() // throughout, so that two drains see one another
	defer p.mu.Unlock()
	i, err := p.indexOf(name)
	if err != nil || p.drained[i].Load() != 0 {
		return err
	}
	for _, g := range p.groups {
		if err := g.canSpare(i); err != nil {
			return err
		}
	}
	p.drained[i].Store(max(int64(p.options.Clock.Now()), 1)) // 0 is not drained
	p.options.Logger.Warn("master drain started; it receives nothing new", "master", name, "over_in", humanDuration(p.drainTime()))
	return nil
}

// Undrain ends the drain of a master; if it is not being drained, nothing changes.
func (p *Pool) Undrain(name string) error {
	i, err := p.indexOf(name)
	if err != nil || p.drained[i].Swap(0) == 0 {
		return err
	}
	p.options.Logger.Info("master drain cancelled", "master", name)
	return nil
}

// drainTime returns the time for which a grant with a master's vote may depend on it.
func (p *Pool) drainTime() time.Duration {
	longest := p.options.MaxTTL + p.options.MasterTimeout
	return longest + longest/100
}

// canSpare returns an error if no quorum may vote without a master. Masters that are
// being dialled for the first time do not count.
func (g *Group) canSpare(index int) error {
	left, needed, missing := 0, Quorum(len(g.lanes)), []string(nil)
	for i, s := range g.Statuses() {
		switch {
		case i == index:
		case s.State == votingState:
			left++
		default:
			missing = append(missing, s.phrase())
		}
	}
	if left >= needed {
		return nil
	}
	text := fmt.Sprintf("master %s cannot be drained: without it %d of %d masters may vote in database %d, %d are needed", g.lanes[index].master.Name, left, len(g.lanes), g.db, needed)
	if len(missing) > 0 {
		text += "; first bring back " + strings.Join(missing, ", ")
	}
	return errors.New(text)
}

// drainedLocked adds the drain to the text of a state: a master that could
// vote is draining, and drained once no lock needs it.
func (l *lane) drainedLocked(state, detail string) (string, string) {
	since := l.drained()
	switch left := since + l.group.pool.drainTime() - l.group.now(); {
	case since == 0:
		return state, detail
	case state != votingState:
		return state, strings.TrimPrefix(detail+", being drained", ", ")
	case left > 0:
		return "draining", "what was granted before is over in " + humanDuration(left)
	}
	return "drained", "no lock rests on it any more"
}

// indexOf is the lane of a master.
func (p *Pool) indexOf(name string) (int, error) {
	var names []string
	for i, m := range p.Masters() {
		if m.Name == name {
			return i, nil
		}
		names = append(names, m.Name)
	}
	return 0, &NoMaster{name, names}
}

// NoMaster means that no master has the name.
type NoMaster struct {
	Name  string
	Names []string
}

func (e *NoMaster) Error() string {
	return fmt.Sprintf("no master is called %q; the names are %s", e.Name, strings.Join(e.Names, ", "))
}
