// CLIENT LIST, KILL and REPLY: what a connection may see of others and do to them,
// and whether it receives replies.

package commands

import (
	"errors"
	"fmt"
	"redlockd/commands/access"
	"strings"
	"time"
)

// errNoOthers is for a table without a server.
var errNoOthers = errors.New("the connections of this daemon are not known here")

// line is an entry of CLIENT INFO and CLIENT LIST, with the fields known here.
func (d Description) line(cmd string) string {
	return fmt.Sprintf("id=%d addr=%s name=%s db=%d age=%d idle=0 flags=N sub=%d psub=%d %s cmd=%s user=%s lib-name=%s lib-ver=%s resp=%d\n",
		d.ID, d.Addr, d.Name, d.DB, d.age(), d.Channels, d.Patterns, unmeasured, cmd, d.User, d.LibName, d.LibVer, d.Proto)
}

// age is in whole seconds.
func (d Description) age() int64 {
	if d.Since.IsZero() {
		return 0
	}
	return int64(time.Since(d.Since) / time.Second)
}

// clientList answers the connections of the client's own user, all of them for
// admins; ID picks some.
func (t *Table) clientList(c *Call) error {
	if t.deps.Connections == nil {
		return errNoOthers
	}
	wanted := make(map[int64]bool)
	if len(c.Args) > 2 {
		if !isWord(c.Args[2], "ID") || len(c.Args) == 3 {
			return redisText("syntax error")
		}
		for _, text := range c.Args[3:] {
			id, ok := parseInteger(text)
			if !ok {
				return redisText("Invalid client ID")
			}
			wanted[id] = true
		}
	}
	me, all := c.Client.Describe(), c.May(access.CategoryAdmin)
	var page strings.Builder
	for _, d := range t.deps.Connections().Describe() {
		cmd := ""
		if d.ID == me.ID {
			d, cmd = me, "client|list"
		}
		if (all || d.User == me.User) && (len(c.Args) == 2 || wanted[d.ID]) {
			page.WriteString(d.line(cmd))
		}
	}
	c.Reply(Bulk(page.String()))
	return nil
}

// clientKill serves KILL addr, which answers OK or an error, and KILL with
// filters, which answers how many there were.
func (t *Table) clientKill(c *Call) error {
	if t.deps.Connections == nil {
		return errNoOthers
	}
	if len(c.Args) == 3 {
		if t.kill(c.Client, filter{addr: c.Args[2], me: true}) == 0 {
			return redisText("No such client")
		}
		c.Reply(OK)
		return nil
	}
	wish, err := readFilter(c.Args[2:])
	if err != nil {
		return err
	}
	c.Reply(Int(t.kill(c.Client, wish)))
	return nil
}

// filter selects the connections that KILL closes.
type filter struct {
	id   int64 // 0: any
	addr string
	user string
	me   bool // the caller, too
}

func readFilter(words []string) (filter, error) {
	var f filter
	if len(words)%2 != 0 {
		return f, redisText("syntax error")
	}
	for i := 0; i < len(words); i += 2 {
		value := words[i+1]
		switch {
		case isWord(words[i], "ID"):
			id, ok := parseInteger(value)
			if !ok || id < 1 {
				return f, redisText("client-id should be greater than 0")
			}
			f.id = id
		case isWord(words[i], "ADDR"):
			f.addr = value
		case isWord(words[i], "USER"):
			f.user = value
		case isWord(words[i], "SKIPME") && isWord(value, "YES"):
			f.me = false
		case isWord(words[i], "SKIPME") && isWord(value, "NO"):
			f.me = true
		default:
			return f, redisText("syntax error")
		}
	}
	return f, nil
}

// kill closes the connections that match; the caller's own one behind the reply.
func (t *Table) kill(caller *Client, f filter) (killed int64) {
	others := t.deps.Connections()
	for _, d := range others.Describe() {
		switch {
		case f.id != 0 && d.ID != f.id, f.addr != "" && d.Addr != f.addr, f.user != "" && d.User != f.user:
		case d.ID == caller.ID && f.me:
			caller.Closing = true
			killed++
		case d.ID != caller.ID && others.Cut(d.ID):
			killed++
		}
	}
	return killed
}

// clientReply answers only to ON: OFF and SKIP are themselves not answered.
func (t *Table) clientReply(c *Call) error {
	switch {
	case isWord(c.Args[2], "ON"):
		c.Client.ReplyMode = ReplyOn
		c.Reply(OK)
		return nil
	case isWord(c.Args[2], "OFF"):
		c.Client.ReplyMode = ReplyOff
	case isWord(c.Args[2], "SKIP"):
		if c.Client.ReplyMode == ReplyOn {
			c.Client.ReplyMode = ReplySkip
		}
	default:
		return redisText("syntax error")
	}
	c.Reply(Silence)
	return nil
}
