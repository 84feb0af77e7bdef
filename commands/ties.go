// What ends with a connection? The wait it is blocked in, and the locks it holds
// with HOLD.
package commands

import "sync"

// Ties are what is tied to one connection. The zero value is ready. Safe for
// concurrent use.
type Ties struct {
	mu    sync.Mutex
	cut   bool
	leave func() // ends the wait under way
	ends  map[*tie]struct{}
}

// tie is one thing that ends with the connection.
type tie struct{ end func() }

// tie has end called when the connection ends, at once if it has, unless untied.
func (t *Ties) tie(end func()) *tie {
	one := &tie{end}
	t.mu.Lock()
	if t.cut {
		t.mu.Unlock()
		end()
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
	cut := t.cut
	t.leave = leave
	t.mu.Unlock()
	if cut {
		leave()
	}
}

// Cut ends everything: the connection is gone.
func (t *Ties) Cut() {
	t.mu.Lock()
	leave, ends := t.leave, t.ends
	t.cut, t.leave, t.ends = true, nil, nil
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	for one := range ends {
		one.end()
	}
}
