package commands

import (
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// Client is what commands may read and change of the connection they came
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

	// Expel ends the connection because its client may not stay. Its wait and its holds
	// end with the reason, nothing more is started, and it is closed behind the replies
	// under way. It never blocks. nil: there is no connection to end.
	Expel func(why Expelled)

	member    access.Member // among the connections of its user
	User      string        // the authenticated user; "" is the default user, unless a password is needed
	Failures  int           // failed logins in a row
	ReplyMode ReplyMode     // CLIENT REPLY
	channels  subscriptions // SUBSCRIBE
	patterns  subscriptions // PSUBSCRIBE
}

// expel is Expel for a client whose user was removed.
func (c *Client) expel(why string) {
	if c.Expel != nil {
		c.Expel(Expelled(why))
	}
}

// Completer takes the one answer of one command, now or later, from any goroutine.
type Completer interface {
	// Complete hands over a finished reply.
	Complete(Reply)
	// CompleteDeferred hands over an answer that is only computed when its turn on
	// the socket has come, because part of it is a remaining time.
	CompleteDeferred(DeferredReply)
}

// DeferredReply is an answer whose content depends on when it is written.
type DeferredReply interface {
	// Reply is called once, when the reply is the next to be encoded.
	Reply() Reply
	// Undelivered is called instead of, or after, Reply when the client is known to
	// be gone before the reply was handed to the kernel.
	Undelivered()
}

// Call is one command on its way through a handler: a promise of exactly one
// answer through Completer, kept now or later.
type Call struct {
	Args      []string // Args[0] is the command's word as it was sent; binary safe
	Client    *Client
	Batch     *redlock.Batch // operations of one read batch leave together
	Completer Completer
}

// Reply answers the call.
func (c *Call) Reply(r Reply) { c.Completer.Complete(r) }
