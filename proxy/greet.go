package proxy

// greet.go answers: who takes care of a connection before redcon does? Its greeter,
// a goroutine that ends when the client has said who it is. redcon takes 8 kB of
// buffers for each connection; a stranger is not worth them. So until the login
// the guard's commands go to the session directly, one by one, and redcon meets
// known clients only.

// acceptAndGreet accepts for the listener; it returns when the server has drained.
// There are never more greeters than clients may be connected.
func (l *listener) acceptAndGreet() {
	for {
		g, err := l.acceptNext()
		if err != nil {
			return
		}
		switch {
		case l.secure:
			l.server.greeters.Go(func() { l.shakeHands(g) })
		case g.receiver.known():
			l.pass(g)
		default:
			l.server.greeters.Go(func() { l.attend(g) })
		}
	}
}

// shakeHands leaves the rest to another goroutine: the stack that the handshake
// needed, 8 kB, would stay with this one.
func (l *listener) shakeHands(g *guard) {
	if l.handshake(g) {
		l.server.greeters.Go(func() { l.attend(g) })
	}
}

// attend hands a connection on when its client is known, or closes it.
func (l *listener) attend(g *guard) {
	if err := g.hearOut(g.receiver.(*session)); err != nil {
		g.Close()
		return
	}
	l.pass(g)
}

// pass gives a connection to redcon.
func (l *listener) pass(g *guard) {
	select {
	case l.ready <- g:
	case <-l.server.drained:
		g.Close()
	}
}

// hearOut has the session run what a client says until it is known.
func (g *guard) hearOut(s *session) error {
	var p [len(standIn)]byte
	g.direct = true
	for !g.receiver.known() {
		g.filled = 0
		if _, err := g.Read(p[:]); err != nil {
			return err
		}
		if args := g.takeAside(); args != nil {
			s.hear(args)
		}
	}
	g.direct, g.filled = false, 0
	return nil
}

// hear takes one command, as receive takes what redcon has read.
func (s *session) hear(args []string) {
	defer s.containing("reader", func() { s.guard.Close() })
	s.server.counters.commands.Add(1)
	input := 0
	for _, arg := range args {
		input += len(arg)
	}
	s.append(s.newSlot(max(input, longInput+1), 0).take(args))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pumping {
		s.pumpLocked()
	}
}
