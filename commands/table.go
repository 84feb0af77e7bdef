// Table and its rows: every command, how it is written and which handler serves
// it. Dispatch, arity errors, COMMAND, help texts and the README table are all
// generated from these rows.

package commands

import (
	"sync"

	"redlockd/commands/access"
)

// Table answers commands. It is safe for concurrent use and never changes
// after NewTable.
type Table struct {
	deps     Deps
	channels channels                       // the subscriptions to locks
	rows     []*command                     // in the order of the documentation
	byName   map[string]*command            // by lower-case name
	parts    map[string]map[string]*command // subcommands by their command's name

	scripts     scriptCache
	probes      prober
	manual      func() *manual // the replies of COMMAND, built at the first use
	fences      fences
	dropinStats dropinCounters // of dropinRows
}

// NewTable builds the commands of one daemon.
func NewTable(env Deps) *Table {
	t := &Table{
		deps:   env.withDefaults(),
		byName: make(map[string]*command),
		parts:  make(map[string]map[string]*command),
	}
	t.channels.events, t.channels.users = env.Events, env.Users
	t.manual = sync.OnceValue(t.newManual)
	for _, group := range [][]*command{t.lockRows(), t.idRows(), t.workRows(), t.masterRows(), t.inspectRows(), t.dropinRows(), t.compatRows(), t.connectionRows(), t.clientRows(), t.channelRows(), t.serverRows()} {
		for _, row := range group {
			t.add(row)
		}
	}
	return t
}

// add registers a row and its subcommands, and adds a HELP subcommand.
func (t *Table) add(row *command) {
	row.full = row.name
	row.syntax = syntaxOf(row.full, row.args)
	t.rows = append(t.rows, row)
	t.byName[row.name] = row
	if len(row.parts) == 0 {
		return
	}
	if !row.named() { // in a named row HELP may be a name
		row.parts = append(row.parts, t.helpRow(row))
	}
	byName := make(map[string]*command)
	for _, part := range row.parts {
		part.since = row.since
		part.full = row.name + "|" + part.name
		part.syntax = syntaxOf(part.full, part.args)
		byName[part.name] = part
	}
	t.parts[row.name] = byName
}

func (t *Table) lockRows() []*command {
	key, token, ttl := keyArgument(), text("token"), integer("ttl")
	wait := optional(option("WAIT", integer("ms")))
	hold := optional(block("hold", word("HOLD"), optional(integer("max-ms"))))
	return []*command{
		{
			name: "dlock", arity: atLeast(3), category: access.CategoryLock, since: firstVersion,
			summary: "Takes a lock for ttl milliseconds: [token, validity, fence], or nil if another token holds it. After WAIT, DEXTEND confirms it.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, ttl, optional(oneOf("mode", word("SHARED"), option("LIMIT", integer("n")))), optional(word("FAIR")), wait, optional(option("TOKEN", token)), optional(option("META", text("text"))), hold},
			handle:  t.dlock, barrier: blocksLock,
		},
		{
			name: "dunlock", arity: between(2, 3), category: access.CategoryLock, since: firstVersion,
			summary: "Releases a lock: 1, or 0 if the token does not hold it. Without a token: what this connection last acquired on key.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, optional(token)},
			handle:  t.dunlock, barrier: withoutToken,
		},
		{
			name: "dextend", arity: exactly(4), category: access.CategoryLock, since: firstVersion,
			summary: "Makes a lock last at least ttl milliseconds from now: its validity, or nil if the token does not hold it any more.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, token, ttl},
			handle:  t.dextend,
		},
		{
			name: "dmlock", arity: atLeast(4), category: access.CategoryLock, since: firstVersion,
			summary: "Takes all of the keys or none, with the reply of DLOCK. After WAIT, DMEXTEND confirms it.",
			flags:   []string{"write", "movablekeys"},
			args:    []argument{ttl, integer("numkeys"), multiple(key), optional(word("SHARED")), optional(word("FAIR")), wait, optional(option("TOKEN", token)), optional(option("META", text("text"))), hold},
			handle:  t.dmlock, barrier: blocksLock,
		},
		{
			name: "dmunlock", arity: atLeast(4), category: access.CategoryLock, since: firstVersion,
			summary: "Releases the keys that the token holds and returns their number.",
			flags:   []string{"write", "movablekeys"},
			args:    []argument{token, integer("numkeys"), multiple(key)},
			handle:  t.dmunlock,
		},
		{
			name: "dmextend", arity: atLeast(5), category: access.CategoryLock, since: firstVersion,
			summary: "Makes all of the keys last at least ttl milliseconds from now: their validity, or nil unless the token holds every one.",
			flags:   []string{"write", "movablekeys"},
			args:    []argument{token, ttl, integer("numkeys"), multiple(key)},
			handle:  t.dmextend,
		},
	}
}

func (t *Table) connectionRows() []*command {
	credentials := option("AUTH", block("credentials", text("username"), text("password")))
	protocol := block("arguments", integer("protover"), optional(credentials), optional(option("SETNAME", text("name"))))
	return []*command{
		whileSubscribed(connection("ping", between(1, 2), "Answers PONG, or the message.", t.ping, optional(text("message")))),
		connection("echo", exactly(2), "Answers the message.", t.echo, text("message")),
		withoutAuth(barrier(connection("hello", atLeast(1), "Describes this server and chooses protocol 2 or 3.", t.hello, optional(protocol)))),
		withoutAuth(barrier(connection("auth", atLeast(2), "Authenticates the client.", t.auth, optional(text("username")), text("password")))),
		barrier(connection("select", exactly(2), "Moves the connection to another database of the masters.", t.selectDatabase, integer("index"))),
		whileSubscribed(withoutAuth(barrier(connection("reset", exactly(1), "Returns the connection to its initial state; locks stay.", t.reset)))),
		whileSubscribed(withoutAuth(barrier(connection("quit", atLeast(1), "Closes the connection after all earlier replies.", t.quit)))),
	}
}

func (t *Table) clientRows() []*command {
	client := connection("client", atLeast(2), "Shows and changes properties of this connection.", nil)
	client.barrier = changesClient
	onOff := oneOf("enabled", word("ON"), word("OFF"))
	attribute := oneOf("attribute", option("LIB-NAME", text("libname")), option("LIB-VER", text("libver")))
	client.parts = []*command{
		connection("getname", exactly(2), "The name of this connection, or nil.", t.clientGetName),
		connection("id", exactly(2), "The number of this connection, unique in this daemon.", t.clientID),
		connection("info", exactly(2), "Describes this connection in one line.", t.clientInfo),
		forAdmins(connection("kill", atLeast(3), "Closes connections by address or filter (ID, ADDR, USER, SKIPME).", t.clientKill, multiple(text("filter")))),
		connection("list", atLeast(2), "Lists the connections of the client's user, for admins all connections.", t.clientList, optional(option("ID", multiple(integer("client-id"))))),
		connection("no-evict", exactly(3), "Accepted: nothing is ever evicted.", t.clientSwitch, onOff),
		connection("no-touch", exactly(3), "Accepted: no command changes what would be evicted.", t.clientSwitch, onOff),
		connection("reply", exactly(3), "Turns the replies to this connection on or off.", t.clientReply, oneOf("action", word("ON"), word("OFF"), word("SKIP"))),
		connection("setinfo", exactly(4), "Sets the name or version of the client library.", t.clientSetInfo, attribute),
		connection("setname", exactly(3), "Names this connection.", t.clientSetName, text("connection-name")),
		connection("tracking", atLeast(3), "Accepted with OPTIN only: no invalidations are sent.", t.clientTracking, onOff, optional(word("OPTIN"))),
	}
	return []*command{client}
}

// channelRows are the rows of SUBSCRIBE and its family.
func (t *Table) channelRows() []*command {
	channels := multiple(text("channel"))
	patterns := multiple(text("pattern"))
	return []*command{
		ofCategory(access.CategoryEvents, whileSubscribed(barrier(connection("subscribe", atLeast(2), "Subscribes to the events of locks, each on channel dlock:<key>.", t.subscribe, channels)))),
		whileSubscribed(barrier(connection("unsubscribe", atLeast(1), "Ends subscriptions, all of them without an argument.", t.unsubscribe, optional(channels)))),
		ofCategory(access.CategoryEvents, whileSubscribed(barrier(connection("psubscribe", atLeast(2), "Subscribes to all channels that match a pattern.", t.psubscribe, patterns)))),
		whileSubscribed(barrier(connection("punsubscribe", atLeast(1), "Ends subscriptions, all of them without an argument.", t.punsubscribe, optional(patterns)))),
		connection("publish", exactly(3), "Always 0: no subscriber receives the message.", t.publish, text("channel"), text("message")),
	}
}

func (t *Table) serverRows() []*command {
	names := optional(multiple(text("command-name")))
	list := ofCategory(access.CategoryInfo, connection("command", atLeast(1), "Describes the commands.", t.commandAll))
	list.parts = []*command{
		connection("count", exactly(2), "How many commands there are.", t.commandCount),
		ofCategory(access.CategoryInfo, connection("docs", atLeast(2), "Summaries and arguments of commands.", t.commandDocs, names)),
		ofCategory(access.CategoryInfo, connection("info", atLeast(2), "Arity, flags and keys of commands.", t.commandInfo, names)),
		ofCategory(access.CategoryInfo, connection("list", exactly(2), "The names of all commands.", t.commandList)),
	}
	config := connection("config", atLeast(2), "Shows the options of this daemon.", nil)
	config.parts = []*command{
		ofCategory(access.CategoryInfo, connection("get", atLeast(3), "Options whose names match the patterns, with their values.", t.configGet, multiple(text("parameter")))),
	}
	return []*command{
		list,
		config,
		ofCategory(access.CategoryInfo, connection("info", atLeast(1), "Statistics of this daemon and its masters, by sections.", t.info, optional(multiple(text("section"))))),
		connection("role", exactly(1), "Always a master without replicas.", t.role),
		connection("time", exactly(1), "Seconds and microseconds of this daemon's clock.", t.clock),
		connection("dbsize", exactly(1), "Always 0: the daemon keeps no keys.", t.dbsize),
		connection("wait", exactly(3), "Always 0: there are no replicas.", t.wait, integer("numreplicas"), integer("timeout")),
		connection("readonly", exactly(1), "Accepted and without effect.", t.accepted),
		connection("readwrite", exactly(1), "Accepted and without effect.", t.accepted),
		connection("cluster", atLeast(2), "An error: this is not a Redis Cluster.", t.cluster, multiple(text("argument"))),
	}
}

// connection is a row that every client may send at any time.
func connection(name string, arity arity, summary string, handle handler, args ...argument) *command {
	return &command{
		name: name, arity: arity, category: access.CategoryConnection, since: firstVersion, redis: true,
		summary: summary, flags: []string{"loading", "stale", "fast"}, args: args, handle: handle,
	}
}

// withoutAuth makes a row serve unauthenticated clients.
func withoutAuth(c *command) *command {
	c.noAuth = true
	return c
}

// whileSubscribed makes a row serve subscribers on RESP2.
func whileSubscribed(c *command) *command {
	c.allowedWhileSubscribed = true
	return c
}

// forAdmins gives a row of Redis the category admin.
func forAdmins(c *command) *command { return ofCategory(access.CategoryAdmin, c) }

// ofCategory gives a row of Redis another category.
func ofCategory(category string, c *command) *command {
	c.category = category
	return c
}

// barrier makes every call of a row run alone on its connection; barrierWhen
// does so for the calls that alone selects.
func barrier(c *command) *command { return barrierWhen(always, c) }

func barrierWhen(alone func(args []string) bool, c *command) *command {
	c.barrier = alone
	return c
}
