// What can be read off a Mode, and what options keep of a daemon. Nothing that a plain lock needs refers to this file.

package lease

import "redlockd/redlock/engine"

// ofDaemon is what options keep of a daemon.
type ofDaemon struct {
	turns      slotTurns
	usedFences usedFences
	notes      notes
}

func (l *Leases) ofDaemon() *ofDaemon { return l.ofOptions.(*ofDaemon) }

// LookingIf is the mode of a request of which it is known now whether the masters are to look at the
// key. All but the exclusive one and callers' values do so anyway.
func LookingIf(m Mode, looks bool) Mode {
	if l, ok := withoutPlace(m).(*limited); ok {
		return &limited{LookingIf(l.Mode, looks), l.limit}
	}
	switch m = withoutPlace(m); {
	case m != exclusive && m != Looking:
	case looks:
		return Looking
	default:
		return exclusive
	}
	return m
}

// LevelOwner is the owner of a reentrant lock; "" = the mode is another one.
func LevelOwner(m Mode) engine.Token {
	if f, ok := bare(m).(*readerMode); ok {
		return f.owner
	}
	return ""
}

// LimitOf is the number of permits; 0 = the mode is another one.
func LimitOf(m Mode) int {
	if f, ok := bare(m).(*permitsMode); ok {
		return f.limit
	}
	return 0
}

// SwapOf is the Swap that a mode is; nil = it is another one.
func SwapOf(m Mode) *Swap {
	s, _ := bare(m).(*Swap)
	return s
}

// BeforePart is the token of the parts before a part of a lock; "" = there is none.
func BeforePart(m Mode) engine.Token {
	if f, ok := bare(m).(*partMode); ok {
		return f.of
	}
	return ""
}

// HasClientValues reports whether it is a lock of a client that treats the quorum as one Redis.
func HasClientValues(m Mode) bool {
	switch bare(m).(type) {
	case valuedMode, *Swap:
		return true
	}
	return false
}
