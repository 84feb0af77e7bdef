// OnClose runs what ends with a connection: the wait that blocks it, the locks it
// holds with HOLD, and its place among its user's connections.

package commands

import "sync"

// OnClose collects the hooks of one connection. The zero value is ready. Safe for
// concurrent use.
type Ties struct {
	mu      sync.Mutex
	cut     bool
	why     error  // why the daemon ends the connection, see Expel
	leave   func() // ends the wait under way
	signOut func() // removes the connection from its user's connections
	ends    map[*tie]struct{}
}

// Expelled is the reason why the daemon ends a connection whose client may not stay.
type Expelled string

func (e Expelled) Error() string { return string(e) }

// closeHook is one thing that ends with the connection. why is nil if the client
// has left, else the reason why the daemon ends the connection.
type tie struct{ end func(why error) }

// add calls end when the connection ends, unless the hook is removed before. If the
// connection has ended, it calls end at once.
func (t *Ties) tie(end func(why error)) *tie {
	hook := &tie{end}
	t.mu.Lock()
	if t.cut || t.why != nil {
		why := t.why
		t.mu.Unlock()
		end(why)
		return hook
	}
	if t.ends == nil {
		t.ends = make(map[*tie]struct{})
	}
	t.ends[hook] = struct{}{}
	t.mu.Unlock()
	return hook
}

func (t *Ties) untie(hook *tie) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ends, hook)
}

// setWait sets how to leave the wait that blocks this connection. There is one at
// a time, and leaving one that is over does nothing.
func (t *Ties) waits(leave func()) {
	t.mu.Lock()
	over := t.cut || t.why != nil
	t.leave = leave
	t.mu.Unlock()
	if over {
		leave()
	}
}

// setSignOut sets how to remove the connection from its user's connections.
func (t *Ties) signedIn(signOut func()) {
	t.mu.Lock()
	closed := t.cut
	t.signOut = signOut
	t.mu.Unlock()
	if closed {
		signOut()
	}
}

// Expel ends the wait and the holds of a connection whose client may not stay. The
// wait replies with why, and the holds are renewed no longer. They are not released:
// the client may still be at work under them.
func (t *Ties) Expel(why Expelled) {
	t.mu.Lock()
	if t.why == nil {
		t.why = why
	}
	leave, hooks := t.leave, t.ends
	t.leave, t.ends = nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	for hook := range hooks {
		hook.end(why)
	}
}

// expelled returns why the daemon ends the connection, nil if it does not.
func (t *Ties) expelled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Run runs all hooks: the connection is gone.
func (t *Ties) Cut() {
	t.mu.Lock()
	leave, signOut, hooks, why := t.leave, t.signOut, t.ends, t.why
	t.cut, t.leave, t.signOut, t.ends = true, nil, nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	if signOut != nil {
		signOut()
	}
	for hook := range hooks {
		hook.end(why)
	}
}
