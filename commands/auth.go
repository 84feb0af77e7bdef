// AUTH, and the check before every command whether the client may run it.

package commands

import (
	"errors"
	"strings"
)

// maxLoginFailures is how many failed logins a connection may have in a row.
const maxLoginFailures = 3

var (
	wrongPassword   = Error("WRONGPASS", "invalid username-password pair or user is disabled.")
	notSignedIn     = Error("NOAUTH", "Authentication required.")
	helloNeedsAuth  = Error("NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	busyLogin       = Error("TRYLATER", "too many logins are being checked at once; try again in a second")
	tooManyFailures = Error("TRYLATER", "too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again")
)

// auth uses the texts of Redis; ioredis turns exactly the first into a warning.
func (t *Table) auth(c *Call) error {
	name, password := defaultUser, c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) == 2 && t.deps.Users == nil:
		return redisText("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(c.Args) > 3:
		return redisText("syntax error")
	case len(c.Args) == 3:
		name = c.Args[1]
	}
	if refusal, ok := t.signIn(c.Client, name, password); !ok {
		c.Reply(refusal)
		return nil
	}
	c.Reply(OK)
	return nil
}

// signIn makes the client that user, or returns a refusal and changes nothing.
func (t *Table) signIn(client *Client, name, password string) (refusal Reply, ok bool) {
	users := t.deps.Users
	if users == nil {
		return wrongPassword, name == defaultUser
	}
	if refusal, ok = users.login(&users.port, client.Host, name, password); !ok {
		client.loginFailed()
		return refusal, false
	}
	name = strings.Clone(name)
	if refusal, ok = users.join(client, name); !ok {
		client.loginFailed()
		return refusal, false
	}
	client.User, client.Failures = name, 0
	return Reply{}, true
}

// login checks a password within the login limit of the port or the admin endpoint.
func (u *Users) login(limit *loginLimit, host, name, password string) (refusal Reply, ok bool) {
	now := u.now()
	attempt := loginAttempt{host: host, user: strings.Clone(name[:min(len(name), maxUserName)]), exists: u.find(name) != nil}
	if !limit.allows(&attempt, now) {
		return tooManyFailures, false
	}
	right, err := u.check(name, password)
	if err != nil {
		return busyLogin, false
	}
	if !right {
		limit.failed(&attempt, now)
		if attempt.reserved {
			return tooManyFailures, false
		}
		return wrongPassword, false
	}
	limit.succeeded(&attempt)
	return Reply{}, true
}

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
		return t.deps.Users.withinRate(who)
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
	who := users.find(c.Client.User)
	if who == nil {
		c.Client.Closing = true
		return Error("NOAUTH", removed(c.Client.User).Error()), false
	}
	if err := users.withinRate(who); err != nil {
		return Error("TRYLATER", err.Error()), false
	}
	if !who.may(row.category) {
		return Error("NOPERM", "this user has no permissions to run the '"+row.full+"' command"), false
	}
	if grantedToAll(row.category) {
		return Reply{}, true
	}
	if row.named() && len(c.Args) > 1 && !who.mayUse(c.Args[1]) {
		return Error("NOPERM", "this user has no permissions to access one of the keys used as arguments"), false
	}
	return Reply{}, true
}

// user is the client's user, nil where there are no users.
func (t *Table) user(client *Client) *user {
	if t.deps.Users == nil || client.User == "" {
		return nil
	}
	return t.deps.Users.find(client.User)
}

// mayUse reports whether the client may see a name; for listings.
func (t *Table) mayUse(client *Client, name string) bool {
	who := t.user(client)
	return t.deps.Users == nil || who != nil && who.mayUse(name)
}

// mayAdmin reports whether the client may see the connections of other users.
func (t *Table) mayAdmin(client *Client) bool {
	who := t.user(client)
	return t.deps.Users == nil || who != nil && who.may(categoryAdmin)
}

// errNoOthers is for a table without a server.
var errNoOthers = errors.New("the connections of this daemon are not known here")
