// DFORCE key: releases a lock whoever holds it.
package commands

import "redlockd/redlock"

// dforce answers 1 if somebody held the lock and 0 if nobody did.
func (t *Table) dforce(c *Call) error {
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	request := redlock.ForceRequest{DB: c.Client.DB, Key: key, By: *c.Client.who()}
	t.env.Looks.Force(request, func(released bool, err error) {
		switch {
		case err != nil:
			c.Reply(failure(err))
		case released:
			c.Reply(Int(1))
		default:
			c.Reply(Int(0))
		}
	})
	return nil
}

// who is this client, for people who look at what it asked for. What was handed
// out never changes.
func (c *Client) who() *redlock.Who {
	who := redlock.Who{Client: c.ID, Addr: c.Addr, Name: c.Name, User: c.User}
	if who.User == "" {
		who.User = defaultUser
	}
	if c.known == nil || *c.known != who {
		known := who // who itself stays on the stack
		c.known = &known
	}
	return c.known
}
