// AUTH, and the check before every command whether the client may run it.

package commands

import (
	"errors"

	"redlockd/commands/access"
)

// maxLoginFailures is how many failed logins a connection may have in a row.
const maxLoginFailures = 3

var (
	notSignedIn    = Error("NOAUTH", "Authentication required.")
	helloNeedsAuth = Error("NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
)

// auth uses the texts of Redis; ioredis turns exactly the first into a warning.
func (t *Table) auth(c *Call) error {
	name, password := access.DefaultUser, c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) == 2 && t.deps.Users == nil:
		return redisText("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(c.Args) > 3:
		return redisText("syntax error")
	case len(c.Args) == 3:
		name = c.Args[1]
	}
	if err := t.signIn(c.Client, name, password); err != nil {
		c.Reply(refused(err))
		return nil
	}
	c.Reply(OK)
	return nil
}

// signIn makes the client that user, or returns a refusal and changes nothing.
func (t *Table) signIn(client *Client, name, password string) error {
	users := t.deps.Users
	if users == nil {
		if name == access.DefaultUser {
			return nil
		}
		return access.ErrWrongPassword
	}
	name, err := users.SignIn(&client.member, client.Host, name, password)
	if err != nil {
		client.loginFailed()
		return err
	}
	client.member.Expel = client.expel
	client.OnClose.setSignOut(func() { users.SignOut(&client.member) })
	client.User, client.Failures = name, 0
	return nil
}

// refused is the reply to a refusal of package access.
func refused(refusal error) Reply { return Reply{Kind: KindError, Text: refusal.Error()} }

// loginFailed counts a failed login; the last one closes the connection behind the reply.
func (c *Client) loginFailed() {
	if c.Failures++; c.Failures >= maxLoginFailures {
		c.Closing = true
	}
}

// Authenticated reports whether the client may do more than authenticate. Until
// then it gets little memory.
func (t *Table) Authenticated(client *Client) bool { return t.deps.Users == nil || client.User != "" }

// countUnknown counts an unknown command. From an unauthenticated client it counts
// as a failed login: scanners of other protocols get no further. From a user it
// counts as a command; refusal is then the answer.
func (t *Table) countUnknown(c *Call) (refusal error) {
	if !t.Authenticated(c.Client) {
		c.Client.loginFailed()
		return nil
	}
	return t.chargeRate(c)
}

// chargeRate counts a command that no row serves against its user's rate.
func (t *Table) chargeRate(c *Call) error {
	if who := t.user(c.Client); who != nil {
		return t.deps.Users.WithinRate(who)
	}
	return nil
}

// allow answers the call and returns false if the client may not do this.
func (t *Table) allow(c *Call, row *command) bool {
	refusal, ok := t.permit(c, row)
	if ok && c.Client.subscribed() && c.Client.Proto < 3 && !row.allowedWhileSubscribed {
		refusal, ok = refuseSubscribed(row), false
	}
	if !ok {
		c.Reply(refusal)
	}
	return ok
}

func (t *Table) permit(c *Call, row *command) (refusal Reply, ok bool) {
	users := t.deps.Users
	if users == nil || row.noAuth {
		return Reply{}, true
	}
	if c.Client.User == "" {
		return notSignedIn, false
	}
	who := users.Find(c.Client.User)
	if who == nil {
		c.Client.Closing = true
		return Error("NOAUTH", access.Removed(c.Client.User)), false
	}
	if err := users.WithinRate(who); err != nil {
		return Error("TRYLATER", err.Error()), false
	}
	if !who.May(row.category) {
		return Error("NOPERM", "this user has no permissions to run the '"+row.full+"' command"), false
	}
	if access.GrantedToAll(row.category) {
		return Reply{}, true
	}
	if row.named() && len(c.Args) > 1 && !who.MayUse(c.Args[1]) {
		return Error("NOPERM", "this user has no permissions to access one of the keys used as arguments"), false
	}
	return Reply{}, true
}

// user is the client's user, nil where there are no users.
func (t *Table) user(client *Client) *access.Rights {
	if t.deps.Users == nil || client.User == "" {
		return nil
	}
	return t.deps.Users.Find(client.User)
}

// mayUse reports whether the client may see a name; for listings.
func (t *Table) mayUse(client *Client, name string) bool {
	who := t.user(client)
	return t.deps.Users == nil || who != nil && who.MayUse(name)
}

// mayAdmin reports whether the client may see the connections of other users.
func (t *Table) mayAdmin(client *Client) bool {
	who := t.user(client)
	return t.deps.Users == nil || who != nil && who.May(access.CategoryAdmin)
}

// errNoOthers is for a table without a server.
var errNoOthers = errors.New("the connections of this daemon are not known here")
