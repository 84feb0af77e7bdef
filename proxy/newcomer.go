package proxy

// newcomer.go answers: how much may a client have of us that needs to sign in
// and has not? Little, and not for long: whoever reaches the port is one. The
// numbers of words and bytes are those of Redis 7 and Valkey, from the remedies
// of CVE-2021-32675 and CVE-2025-21605. All newcomers together have one budget of
// memory, see budget.go, and so many turns a second.

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	newcomerArgs    = 10       // words of a command
	newcomerBulk    = 16 << 10 // bytes of a word
	newcomerCommand = 64 << 10 // bytes of a command or line, and so of what is kept of one
	newcomerOutput  = 1 << 10  // bytes of answers to what was read at once
	loginTimeout    = 10 * time.Second

	// A turn is one read and what is answered to its first commands. At this pace a
	// thousand strangers at their worst took a quarter to two thirds of a core, with
	// their comings and goings (measured), and ten thousand honest ones that come at
	// once are through in three seconds.
	turnsPerSecond  = 4000
	turnsAtOnce     = 1000
	commandsPerTurn = 4
	greetingTurns   = 4 // a handshake: its signature and key exchange
)

var (
	// errUnheard ends a newcomer that asks much without listening.
	errUnheard = errors.New("more answers are due than a client gets that has not signed in")
	// errCrowded ends one whose memory others need.
	errCrowded = errors.New("those who have not signed in hold too much memory together")
)

const (
	tooManyNewcomerArgs = "Protocol error: unauthenticated multibulk length"
	tooLongNewcomerBulk = "Protocol error: unauthenticated bulk length"
)

// newcomers derives what holds before the login.
func (o Options) newcomers() *Options {
	o.unknown = true
	o.MaxCommand = min(o.MaxCommand, newcomerCommand)
	o.MaxInline = min(o.MaxInline, newcomerCommand)
	return &o
}

// newcomerLine says why an inline command is too much, "" if it is not.
func newcomerLine(args []string) string {
	if len(args) > newcomerArgs {
		return tooManyNewcomerArgs
	}
	for _, arg := range args {
		if len(arg) > newcomerBulk {
			return tooLongNewcomerBulk
		}
	}
	return ""
}

// crowded is what a newcomer is told who has to make room for another.
func (s *stock) crowded() string {
	return fmt.Sprintf("clients that have not signed in hold more than %d bytes of unfinished commands together, and yours was the oldest; "+
		"sign in with a command of at most %d bytes, or raise unauthenticated-memory", s.budget.most, nookSize)
}

// limits are small until the client has said who it is.
func (g *guard) limits() *Options {
	if g.receiver.known() {
		return g.options
	}
	return g.options.newcomer
}

// receiveNewcomer reads what an unknown client says, where it is to wait: it is
// handed over one by one, since a batch of short commands would cost a slot each.
func (g *guard) receiveNewcomer() error {
	g.wait(g.stock.turns.reserve(1))
	g.credit = commandsPerTurn
	g.awaitLogin()
	free, ok := g.room()
	if !ok {
		g.refuse(g.stock.crowded())
		return nil
	}
	n, err := g.Conn.Read(free)
	g.buf = g.buf[:len(g.buf)+n]
	if errors.Is(err, os.ErrDeadlineExceeded) && !g.isFinished() && (g.isEvicted() || g.receiver.known() || g.receiver.busy()) {
		return nil // Read looks again at what it is now
	}
	return err
}

// awaitLogin lets all that an unknown client says before its login take one
// span of time together.
func (g *guard) awaitLogin() {
	if g.login.IsZero() {
		g.login = time.Now().Add(g.options.LoginTimeout)
	}
	g.owed.Store(0)
	g.setReadDeadline(max(time.Nanosecond, time.Until(g.login)))
}

// welcome ends what was held against a client before its login; who signs out
// later has time again.
func (g *guard) welcome() {
	g.login = time.Time{}
	g.discharge()
}

// spendCredit has an unknown client take another turn when its answers have
// become many.
func (g *guard) spendCredit() {
	if g.receiver.known() {
		return
	}
	if g.credit--; g.credit < 0 {
		g.wait(g.stock.turns.reserve(1))
		g.credit = commandsPerTurn - 1
	}
}

// wait lets time pass, but not beyond the end of the connection or of its share.
func (g *guard) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.left:
	case <-g.roused:
	}
}
