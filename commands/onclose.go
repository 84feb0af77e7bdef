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
func (o *OnClose) Add(end func(why error)) (remove func()) {
	hook := &closeHook{end}
	o.mu.Lock()
	if o.closed || o.reason != nil {
		why := o.reason
		o.mu.Unlock()
		end(why)
		return func() {}
	}
	defer o.mu.Unlock()
	if o.hooks == nil {
		o.hooks = make(map[*closeHook]struct{})
	}
	o.hooks[hook] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.hooks, hook)
	}
}

// SetWait sets how to leave the wait that blocks this connection. There is one at
// a time, and leaving one that is over does nothing.
func (o *OnClose) SetWait(leave func()) {
	o.mu.Lock()
	over := o.closed || o.reason != nil
	o.leaveWait = leave
	o.mu.Unlock()
	if over {
		leave()
	}
}

// Expel ends the wait and the holds of a connection whose client may not stay. The
// wait replies with why, and the holds are renewed no longer. They are not released:
// the client may still be at work under them.
func (o *OnClose) Expel(why Expelled) {
	o.mu.Lock()
	if o.reason == nil {
		o.reason = why
	}
	o.endLocked()
}

// Expelled returns why the daemon ends the connection, nil if it does not.
func (o *OnClose) Expelled() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}

// Run runs all hooks: the connection is gone.
func (o *OnClose) Run() {
	o.mu.Lock()
	o.closed = true
	o.endLocked()
}

// endLocked ends the wait and runs the hooks, after it has given up the mutex.
func (o *OnClose) endLocked() {
	leave, hooks, why := o.leaveWait, o.hooks, o.reason
	o.leaveWait, o.hooks = nil, nil
	o.mu.Unlock()
	if leave != nil {
		leave()
	}
	for hook := range hooks {
		hook.run(why)
	}
}
