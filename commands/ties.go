// What ends with a connection? The wait it is blocked in, the locks it holds with
// HOLD, and its place among its user's connections.
package commands

import "sync"

// Ties are what is tied to one connection. The zero value is ready. Safe for
// concurrent use.
type Ties struct {
	mu      sync.Mutex
	cut     bool
	why     error  // the daemon ends the connection, see Expel
	leave   func() // ends the wait under way
	signOut func() // ends the connection's place among its user's
	ends    map[*tie]struct{}
}

// Expelled is why the daemon ends a connection whose client may not stay.
type Expelled string

func (e Expelled) Error() string { return string(e) }

// tie is one thing that ends with the connection: why is nil if the client has left,
// else why the daemon ends the connection.
type tie struct{ end func(why error) }

// tie has end called when the connection ends, at once if it has, unless untied.
func (t *Ties) tie(end func(why error)) *tie {
	one := &tie{end}
	t.mu.Lock()
	if t.cut || t.why != nil {
		why := t.why
		t.mu.Unlock()
		end(why)
		return one
	}
	if t.ends == nil {
		t.ends = make(map[*tie]struct{})
	}
	t.ends[one] = struct{}{}
	t.mu.Unlock()
	return one
}

func (t *Ties) untie(one *tie) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ends, one)
}

// waits notes how to leave the wait that this connection is blocked in: there is
// one at a time, and leaving one that is over does nothing.
func (t *Ties) waits(leave func()) {
	t.mu.Lock()
	over := t.cut || t.why != nil
	t.leave = leave
	t.mu.Unlock()
	if over {
		leave()
	}
}

// signedIn notes how to end the connection's place among its user's.
func (t *Ties) signedIn(signOut func()) {
	t.mu.Lock()
	cut := t.cut
	t.signOut = signOut
	t.mu.Unlock()
	if cut {
		signOut()
	}
}

// Expel ends what is tied because the client may not stay: its wait answers why, and
// its holds are renewed no longer. They are not released: the client may be at work.
func (t *Ties) Expel(why Expelled) {
	t.mu.Lock()
	if t.why == nil {
		t.why = why
	}
	leave, ends := t.leave, t.ends
	t.leave, t.ends = nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	for one := range ends {
		one.end(why)
	}
}

// expelled is why the daemon ends the connection, nil if it does not.
func (t *Ties) expelled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Cut ends everything: the connection is gone.
func (t *Ties) Cut() {
	t.mu.Lock()
	leave, signOut, ends, why := t.leave, t.signOut, t.ends, t.why
	t.cut, t.leave, t.signOut, t.ends = true, nil, nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	if signOut != nil {
		signOut()
	}
	for one := range ends {
		one.end(why)
	}
}
