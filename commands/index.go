// index finds the rows of commands by their names.

package commands

import (
	"cmp"
	"strings"

	"redlockd/commands/arg"
)

// MaxCommandName bounds the words that are looked up; a test checks that every
// name in the table is shorter.
const MaxCommandName = 32

// ShownBytes bounds what an error repeats of an unknown command. Redis cuts at
// the same length, and libraries match on the text.
const ShownBytes = 128

// index has the rows of a table. It never changes after NewTable.
type index struct {
	rows   []*Command          // in the order of the documentation
	byName map[string]*Command // by lower-case name
	tried  map[string]*Command // by the names that are tried for it

	entries, documents, names Reply // of COMMAND, about all rows
}

// add registers a row and its subcommands, and adds a HELP subcommand.
func (ix *index) add(row *Command) {
	row.Since = cmp.Or(row.Since, firstVersion)
	ix.rows = append(ix.rows, row)
	ix.byName[row.Name] = row
	for _, name := range row.Tried {
		ix.tried[name] = row
	}
	if len(row.Parts) > 0 && !row.Named() { // in a named row HELP may be a name
		row.Parts = append(row.Parts, helpRow(row))
	}
	row.byName = make(map[string]*Command, len(row.Parts))
	for _, part := range row.Parts {
		part.Since = row.Since
		part.fill(row.Name + "|" + part.Name)
		row.byName[part.Name] = part
	}
	row.fill(row.Name) // after its parts
}

func (c *Command) fill(full string) {
	c.Full = full
	c.Syntax, c.options = arg.Syntax(full, c.Args), arg.Options(c.Args)
	c.entry, c.document = entry(c), document(c)
}

// named finds "client" as well as "client|id"; nil is what there is no row for.
func (ix *index) named(names []string) []*Command {
	rows := make([]*Command, len(names))
	for i, name := range names {
		name, part, both := strings.Cut(name, "|")
		rows[i] = find(ix.byName, name)
		if rows[i] != nil && both {
			rows[i] = find(rows[i].byName, part)
		}
	}
	return rows
}

// route finds the row of a command or subcommand.
func (ix *index) route(args []string) (*Command, error) {
	if len(args) == 0 {
		return nil, unknownCommand([]string{""})
	}
	row := find(ix.byName, args[0])
	if row == nil {
		if meant := find(ix.tried, args[0]); meant != nil {
			return nil, RedisText(unknownCommand(args).Error() + "(did you mean " + meant.Syntax + "?)")
		}
		return nil, RedisText(unknownCommand(args).Error() + notServed(args[0]))
	}
	if len(row.Parts) == 0 || len(args) == 1 {
		return row, nil
	}
	if row.Named() && row.Arity.Fits(len(args)) {
		return row, nil // the word is a name, as in DIDS DEL
	}
	part := find(row.byName, args[1])
	switch {
	case part != nil:
		return part, nil
	case row.Named():
		return row, nil
	}
	text := "unknown subcommand '" + Clip(args[1], ShownBytes) + "'. Try " + strings.ToUpper(row.Name) + " HELP."
	if row.Name == "config" && arg.IsWord(args[1], "SET") {
		text += " Options change in the configuration file or on the command line, and by a restart; users by SIGHUP."
	}
	return nil, RedisText(text)
}

// notServed says behind the text of Redis what is there instead of a command of Redis for data.
func notServed(name string) string {
	switch strings.ToLower(Clip(name, MaxCommandName)) {
	case "dhelp", "help":
		return "(COMMAND DOCS describes the commands)"
	case "sentinel":
		return "(redlockd is one address like a single Redis: connect without Sentinel)"
	case "flushall", "flushdb":
		return "(redlockd is not a database; DFORCE key releases one lock regardless of its holder)"
	case "publish", "spublish":
		return "(redlockd is not a message broker; it publishes the events of locks, SUBSCRIBE dlock:key)"
	case "append", "decr", "getex", "getset", "hgetall", "hincrby", "hset", "hmset", "hdel", "lpush", "rpush", "lpop", "rpop", "lrange", "mget", "mset", "incrbyfloat",
		"msetnx", "rename", "sadd", "smembers", "srem", "xadd", "xread", "xreadgroup", "zadd", "zrange", "zrangebyscore", "zrank", "zrem":
		return "(redlockd is not a database: it serves locks, ids and work; COMMAND LIST has its commands)"
	}
	return ""
}

// find looks a word up in any case. It does not allocate: the conversion in
// the index expression is free, and the copy stays on the stack.
func find(rows map[string]*Command, name string) *Command {
	var lower [MaxCommandName]byte
	if len(name) > len(lower) {
		return nil
	}
	for i := range len(name) {
		b := name[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return rows[string(lower[:len(name)])]
}

// unknownCommand repeats the text of Redis word for word: jedis, lettuce,
// Vert.x, ioredis, Spring and rueidis decide by this text what a server supports.
// The arguments are listed until the list is 128 bytes long. The last one is cut
// so that its text, without quotes, just fits.
func unknownCommand(args []string) error {
	var list strings.Builder
	for _, one := range args[1:] {
		space := ShownBytes - list.Len()
		if space <= 0 {
			break
		}
		list.WriteString("'" + Clip(one, space) + "' ")
	}
	return RedisText("unknown command '" + Clip(args[0], ShownBytes) + "', with args beginning with: " + list.String())
}

// Clip cuts a text after n bytes and, as Redis does, at its first NUL.
func Clip(s string, n int) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s[:min(len(s), n)]
}
