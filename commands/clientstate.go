// Client is the state of a connection, as commands read and change it.

package commands

import (
	"cmp"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// Client has what commands may read and change of the connection they came
// over. The session owns it. Fields other than LastAcquired are read and written
// only by handlers running as barriers (nothing else of this connection in flight)
// or on the goroutine that reads the connection.
type Client struct {
	ID           int64  // unique in this process, from 1
	Addr         string // remote address, for people
	Host         string // the address without port; "" for a unix socket
	Since        time.Time
	Name         string // CLIENT SETNAME
	LibName      string // CLIENT SETINFO
	LibVer       string
	DB           int                // SELECT
	Proto        int                // 2 or 3, set by HELLO; the encoder follows it
	Closing      bool               // set by QUIT: close after the replies so far, run nothing more
	lastIdentity *redlock.Requester // the latest identity
	LastAcquired LastAcquired       // what this connection acquired last on each key
	OnClose      OnClose            // what ends with this connection

	Transaction Transaction // WATCH and MULTI

	// Push sends a message out of turn: to clients on RESP3, and with plain to
	// those on RESP2, too. It never blocks; a client that does not read is closed.
	// nil: there is no client to send to.
	Push func(message Reply, plain bool)

	// SetTracked sets how many bytes of memory the tracked keys take. nil: nothing counts them.
	SetTracked func(bytes int)

	// Expel ends the connection because its client may not stay. Its wait and its holds
	// end with the reason, nothing more is started, and it is closed behind the replies
	// under way. It never blocks. nil: there is no connection to end.
	Expel func(why Expelled)

	member     access.Member // among the connections of its user
	keepMember func()        // removes the hook that ends the member with the connection
	User       string        // the authenticated user; "" is the default user, unless a password is needed
	Failures   int           // failed logins in a row
	ReplyMode  ReplyMode     // CLIENT REPLY
	Channels   Subscriptions // SUBSCRIBE
	Patterns   Subscriptions // PSUBSCRIBE
	Tracking   *Tracking     // CLIENT TRACKING; nil = off
}

// expel is Expel for a client whose user was removed.
func (c *Client) expel(why string) {
	if c.Expel != nil {
		c.Expel(Expelled(why))
	}
}

// Description has what other clients may see of a connection. Its strings are its own.
type Description struct {
	ID         int64
	Addr, Name string
	User       string
	LibName    string
	LibVer     string
	DB, Proto  int
	Channels   int
	Patterns   int
	Since      time.Time // connected
}

// Describe returns what other clients may see of this connection.
func (c *Client) Describe() Description {
	return Description{
		ID: c.ID, Addr: c.Addr, Name: c.Name, User: c.user(), LibName: c.LibName, LibVer: c.LibVer, DB: c.DB, Proto: c.Proto,
		Channels: c.Channels.Len(), Patterns: c.Patterns.Len(), Since: c.Since,
	}
}

func (c *Client) user() string { return cmp.Or(c.User, access.DefaultUser) }

// Identity describes this client for people who inspect its requests. What was
// handed out never changes.
func (c *Client) Identity() *redlock.Requester {
	id := redlock.Requester{ID: c.ID, Addr: c.Addr, Host: c.Host, Name: c.Name, User: c.user(), LibName: c.LibName, LibVer: c.LibVer}
	if c.lastIdentity == nil || *c.lastIdentity != id {
		known := id // id itself stays on the stack
		c.lastIdentity = &known
	}
	return c.lastIdentity
}

// Subscriptions counts the channels and patterns to which the connection has subscribed.
func (c *Client) Subscriptions() int { return c.Channels.Len() + c.Patterns.Len() }

// SubscribedBytes counts the memory of its subscriptions.
func (c *Client) SubscribedBytes() int {
	return c.Channels.Bytes + c.Patterns.Bytes + c.Channels.Len()*subscriptionCost + c.Patterns.Len()*patternCost
}

func (c *Client) Subscribed() bool { return c.Subscriptions() > 0 }

// ReplyMode is set by CLIENT REPLY; the encoder follows it.
type ReplyMode uint8

const (
	ReplyOn   ReplyMode = iota
	ReplySkip           // the next answer is not written
	ReplyOff            // none is
)
