// The rows of connections and of the server.

package commands

import "redlockd/commands/access"

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
	config := connection("config", atLeast(2), "Shows the options of this daemon.", nil)
	config.parts = []*command{
		ofCategory(access.CategoryInfo, connection("get", atLeast(3), "Options whose names match the patterns, with their values.", t.configGet, multiple(text("parameter")))),
	}
	return []*command{
		commandRow(),
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
