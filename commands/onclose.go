// OnClose runs what ends with a connection: the wait that blocks it, the locks it
// holds with HOLD, and its place among its user's connections.

package commands

import "sync"

// OnClose collects the hooks of one connection. The zero value is ready. Safe for
// concurrent use.
type OnClose struct {
	mu        sync.Mutex
	closed    bool
	reason    error  // why the daemon ends the connection, see Expel
	leaveWait func() // ends the wait under way
	hooks     map[*closeHook]struct{}
}

// Expelled is the reason why the daemon ends a connection whose client may not stay.
type Expelled string

func (e Expelled) Error() string { return string(e) }

// closeHook is one thing that ends with the connection.
type closeHook struct{ run func(why error) }

// Add calls end when the connection ends, unless remove is called before. If the
// connection has ended, it calls end at once. why is nil if the client has left, else
// the reason why the daemon ends the connection.
func (t *OnClose) Add(end func(why error)) (remove func()) {
	hook := &closeHook{end}
	t.mu.Lock()
	if t.closed || t.reason != nil {
		why := t.reason
		t.mu.Unlock()
		end(why)
		return func() {}
	}
	defer t.mu.Unlock()
	if t.hooks == nil {
		t.hooks = make(map[*closeHook]struct{})
	}
	t.hooks[hook] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.hooks, hook)
	}
}

// SetWait sets how to leave the wait that blocks this connection. There is one at
// a time, and leaving one that is over does nothing.
func (t *OnClose) SetWait(leave func()) {
	t.mu.Lock()
	over := t.closed || t.reason != nil
	t.leaveWait = leave
	t.mu.Unlock()
	if over {
		leave()
	}
}

// Expel ends the wait and the holds of a connection whose client may not stay. The
// wait replies with why, and the holds are renewed no longer. They are not released:
// the client may still be at work under them.
func (t *OnClose) Expel(why Expelled) {
	t.mu.Lock()
	if t.reason == nil {
		t.reason = why
	}
	t.endLocked()
}

// Expelled returns why the daemon ends the connection, nil if it does not.
func (t *OnClose) Expelled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

// Run runs all hooks: the connection is gone.
func (t *OnClose) Run() {
	t.mu.Lock()
	t.closed = true
	t.endLocked()
}

// endLocked ends the wait and runs the hooks, after it has given up the mutex.
func (t *OnClose) endLocked() {
	leave, hooks, why := t.leaveWait, t.hooks, t.reason
	t.leaveWait, t.hooks = nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	for hook := range hooks {
		hook.run(why)
	}
}
