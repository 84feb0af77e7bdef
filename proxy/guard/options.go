package guard

// options.go contains what all guards of a server share.

import (
	"net"
	"time"

	"golang.org/x/time/rate"

	"redlockd/proxy/preauth"
	"redlockd/proxy/resp"
)

// Options of all guards of a server. Every field is needed.
type Options struct {
	Limits         resp.Limits   // of commands after the login
	CommandTimeout time.Duration // for the rest of a command that did not arrive at once
	LoginTimeout   time.Duration // for a client that needs a login
	WriteTimeout   time.Duration // of one write
	IdleTimeout    time.Duration // of a client with nothing in flight; 0 is none
	RestAfter      time.Duration // a connection that receives nothing for so long rests, without IdleTimeout
	UnauthMemory   int           // bytes that Reserve gives out, for an error
	// Reserve returns one connection's part of the memory of unauthenticated clients.
	// evict is called without any lock when that part is evicted.
	Reserve func(evict func()) preauth.Memory
}

type Group struct {
	options Options
	unauth  resp.Limits // before the login
	pools   preauth.Pools
	turns   *rate.Limiter // of all unauthenticated clients
}

func NewGroup(options Options) *Group {
	return &Group{options: options, unauth: preauth.Limits(options.Limits), turns: rate.NewLimiter(preauth.TurnsPerSecond, preauth.TurnBurst)}
}

// Guard puts a guard over a socket, or over a connection with TLS.
func (gp *Group) Guard(conn net.Conn, events Events) *Conn {
	g := &Conn{Conn: conn, group: gp, Events: events, closed: make(chan struct{}), wake: make(chan struct{}, 1)}
	g.buffer = preauth.Buffer{Pools: &gp.pools, Memory: gp.options.Reserve(g.evict)}
	if secure, ok := conn.(*preauth.TLSConn); ok {
		secure.Attach(g, gp.options.Reserve)
	}
	return g
}

// Authenticated implements preauth.Client.
func (c *Conn) Authenticated() bool { return c.Events.Authenticated() }
