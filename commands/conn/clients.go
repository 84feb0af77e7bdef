// CLIENT LIST, KILL and REPLY: what a connection may see of others and do to them,
// and whether it receives replies.

package conn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

// unmeasured are figures that Redis keeps of a connection and this daemon does
// not. Their names have to be there: redis-py 4 and 5 and go-redis read CLIENT
// INFO into integers, and redis-py fails on the first that is missing.
const unmeasured = "multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 obl=0 oll=0 omem=0 tot-mem=0 events=r"

// describe is an entry of CLIENT INFO and CLIENT LIST, with the fields known here. CLIENT LIST adds the
// locks that the connection took and that run; go-redis fails on a field of CLIENT INFO that it does not know.
func describe(d commands.Description, cmd string) string {
	return fmt.Sprintf("id=%d addr=%s name=%s db=%d age=%d idle=0 flags=N sub=%d psub=%d %s cmd=%s user=%s lib-name=%s lib-ver=%s resp=%d",
		d.ID, d.Addr, d.Name, d.DB, age(d), d.Channels, d.Patterns, unmeasured, cmd, d.User, d.LibName, d.LibVer, d.Proto)
}

func age(d commands.Description) int64 {
	if d.Since.IsZero() {
		return 0
	}
	return int64(time.Since(d.Since) / time.Second)
}

// clientList answers the connections of the client's own user, all of them for
// admins; ID picks some.
func (h *handlers) clientList(c *commands.Call) error {
	wanted := make(map[int64]bool)
	if len(c.Args) > 2 {
		if !arg.IsWord(c.Args[2], "ID") || len(c.Args) == 3 {
			return commands.RedisText("syntax error")
		}
		for _, text := range c.Args[3:] {
			id, ok := arg.ParseInteger(text)
			if !ok {
				return commands.RedisText("Invalid client ID")
			}
			wanted[id] = true
		}
	}
	me, all, held := c.Client.Describe(), c.May(access.CategoryAdmin), h.deps.Inspect.HeldBy()
	var page strings.Builder
	for _, d := range h.deps.Connections.Describe() {
		cmd := ""
		if d.ID == me.ID {
			d, cmd = me, "client|list"
		}
		if (all || d.User == me.User) && (len(c.Args) == 2 || wanted[d.ID]) {
			page.WriteString(describe(d, cmd) + fmt.Sprintf(" locks=%d\n", held[d.ID]))
		}
	}
	return c.Reply(commands.Bulk(page.String()))
}

// clientKill serves KILL addr, which answers OK or an error, and KILL with
// filters, which answers how many there were.
func (h *handlers) clientKill(c *commands.Call) error {
	if len(c.Args) == 3 {
		if name := strings.ToUpper(c.Args[2]); slices.Contains(filterNames, name) { // Redis takes it for an address
			return fmt.Errorf("the filter %s has no value: CLIENT KILL %[1]s value", name)
		}
		if h.kill(c.Client, filter{addr: c.Args[2], me: true}) == 0 {
			return commands.RedisText("No such client")
		}
		return c.Reply(commands.OK)
	}
	wish, err := readFilter(c.Args[2:])
	if err != nil {
		return err
	}
	return c.Reply(commands.Int(h.kill(c.Client, wish)))
}

var filterNames = []string{"ID", "ADDR", "USER", "SKIPME"}

type filter struct {
	id   int64 // 0: any
	addr string
	user string
	me   bool // the caller, too
}

func readFilter(words []string) (filter, error) {
	var f filter
	if len(words)%2 != 0 {
		return f, commands.RedisText("syntax error")
	}
	for i := 0; i < len(words); i += 2 {
		value := words[i+1]
		switch {
		case arg.IsWord(words[i], "ID"):
			id, ok := arg.ParseInteger(value)
			if !ok || id < 1 {
				return f, commands.RedisText("client-id should be greater than 0")
			}
			f.id = id
		case arg.IsWord(words[i], "ADDR"):
			f.addr = value
		case arg.IsWord(words[i], "USER"):
			f.user = value
		case arg.IsWord(words[i], "SKIPME") && arg.IsWord(value, "YES"):
			f.me = false
		case arg.IsWord(words[i], "SKIPME") && arg.IsWord(value, "NO"):
			f.me = true
		default:
			return f, commands.RedisText("syntax error")
		}
	}
	return f, nil
}

// kill closes the connections that match; the caller's own one behind the reply.
func (h *handlers) kill(caller *commands.Client, f filter) (killed int64) {
	others := h.deps.Connections
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
func (h *handlers) clientReply(c *commands.Call) error {
	switch {
	case arg.IsWord(c.Args[2], "ON"):
		c.Client.ReplyMode = commands.ReplyOn
		return c.Reply(commands.OK)
	case arg.IsWord(c.Args[2], "OFF"):
		c.Client.ReplyMode = commands.ReplyOff
	case arg.IsWord(c.Args[2], "SKIP"):
		if c.Client.ReplyMode == commands.ReplyOn {
			c.Client.ReplyMode = commands.ReplySkip
		}
	default:
		return commands.RedisText("syntax error")
	}
	return c.Reply(commands.Silence)
}
