// Permissions: the login of a client, and the check before every command whether the
// client may run it.

package commands

import (
	"redlockd/commands/access"
	"redlockd/redlock"
)

// maxLoginFailures bounds the failed logins of a connection in a row.
const maxLoginFailures = 3

var (
	notSignedIn     = Error("NOAUTH", "Authentication required. Send AUTH password, or AUTH user password.")
	noKeyPermission = Error("NOPERM", "this user has no permissions to access one of the keys used as arguments")
)

// SignIn makes the client that user, or replies with a refusal and changes nothing.
func (c *Call) SignIn(name, password string) bool {
	if err := c.signIn(name, password); err != nil {
		c.Reply(Reply{Kind: KindError, Text: err.Error()})
		return false
	}
	return true
}

func (c *Call) signIn(name, password string) error {
	users, client := c.users, c.Client
	if users == nil {
		if name == access.DefaultUser {
			return nil
		}
		return access.ErrWrongPassword
	}
	if client.member.Expel == nil {
		client.member.Expel = client.expel // before a reload can find the member
	}
	name, err := users.SignIn(&client.member, client.Host, name, password)
	if err != nil {
		client.loginFailed()
		return err
	}
	if client.keepMember != nil { // the hook of an earlier login
		client.keepMember()
	}
	client.keepMember = client.OnClose.Add(func(error) { users.SignOut(&client.member) })
	client.User, client.Failures = name, 0
	return nil
}

// SignOut makes the client one that has not authenticated.
func (c *Call) SignOut() {
	c.Client.User = ""
	c.users.SignOut(&c.Client.member)
}

// loginFailed counts a failed login; the last one closes the connection behind the reply.
func (c *Client) loginFailed() {
	if c.Failures++; c.Failures >= maxLoginFailures {
		c.Closing = true
	}
}

// Authenticated reports whether the client of the call may do more than authenticate.
func (c *Call) Authenticated() bool { return authenticated(c.users, c.Client) }

func authenticated(users *access.Users, client *Client) bool {
	return users == nil || client.User != ""
}

// countUnknown counts an unknown command. From an unauthenticated client it counts
// as a failed login: scanners of other protocols get no further. From a user it
// counts as a command; refusal is then the answer.
func (c *Call) countUnknown() (refusal error) {
	if !c.Authenticated() {
		c.Client.loginFailed()
		return nil
	}
	return c.chargeRate()
}

// chargeRate counts a command that no row serves against its user's rate.
func (c *Call) chargeRate() error { return c.users.WithinRate(c.Rights()) }

// allow answers the call and returns false if the client may not do this.
func (c *Call) allow(row *Command) bool {
	refusal, ok := c.permit(row)
	if ok && c.Client.Subscribed() && c.Client.Proto < 3 && !row.allowedWhileSubscribed {
		refusal, ok = refuseSubscribed(row), false
	}
	if !ok {
		c.Reply(refusal)
	}
	return ok
}

func (c *Call) permit(row *Command) (refusal Reply, ok bool) {
	users := c.users
	if users == nil || row.noAuth {
		return Reply{}, true
	}
	if c.Client.User == "" {
		return notSignedIn, false
	}
	who := c.Rights()
	if who == nil {
		c.Client.Closing = true
		return Error("NOAUTH", access.Removed(c.Client.User)), false
	}
	if err := users.WithinRate(who); err != nil {
		return Error("TRYLATER", err.Error()), false
	}
	if !who.May(row.Category) {
		return Error("NOPERM", "this user has no permissions to run the '"+row.Full+"' command"), false
	}
	usesKey := !access.GrantedToAll(row.Category) && row.Named() && len(c.Args) > 1
	return noKeyPermission, !usesKey || who.MayUse(c.Args[1])
}

// Rights returns the rights of the client's user, nil for a client that has not authenticated.
func (c *Call) Rights() *access.Rights { return c.users.Find(c.Client.User) }

// May reports whether the client has a category beside that of the command.
func (c *Call) May(category string) bool { return c.Rights().May(category) }

// MayUse reports whether the client may see a name; for listings.
func (c *Call) MayUse(name string) bool { return c.Rights().MayUse(name) }

// KeyFilter returns which keys the client may see. It works in any goroutine.
func (c *Call) KeyFilter() func(redlock.Key) bool { return c.users.KeyFilter(c.Client.User) }

// MayUseAll replies and returns false unless the client may use all keys; for commands
// whose keys the table cannot find.
func (c *Call) MayUseAll(keys ...redlock.Key) bool {
	for _, key := range keys {
		if !c.MayUse(string(key)) {
			c.Reply(noKeyPermission)
			return false
		}
	}
	return true
}

// MayCount replies and returns false if the user's quota has no room for the counter.
func (c *Call) MayCount(name redlock.Key) bool {
	err := c.users.MayCount(c.Rights(), c.Client.DB, name)
	if err != nil {
		c.Reply(Error("NOPERM", err.Error()))
	}
	return err == nil
}

// refuseSubscribed refuses what a subscriber on RESP2 cannot send: the replies
// could not be distinguished from messages.
func refuseSubscribed(row *Command) Reply {
	return Error("ERR", "Can't execute '"+row.Full+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}
