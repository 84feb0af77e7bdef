// The rows of connections and of the server.

package conn

import (
	"slices"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{deps: deps, channels: channels{events: deps.Inspect, users: deps.Users}}
	return slices.Concat(h.connectionRows(), h.clientRows(), h.channelRows(), h.serverRows())
}

func (h *handlers) connectionRows() []*commands.Command {
	credentials := arg.Option("AUTH", arg.Block("credentials", arg.Text("username"), arg.Text("password")))
	protocol := arg.Block("arguments", arg.Integer("protover"), arg.Optional(credentials), arg.Optional(arg.Option("SETNAME", arg.Text("name"))))
	return []*commands.Command{
		commands.WhileSubscribed(commands.Connection("ping", commands.Between(1, 2), "Answers PONG, or the message.", h.ping, arg.Optional(arg.Text("message")))),
		commands.Connection("echo", commands.Exactly(2), "Answers the message.", h.echo, arg.Text("message")),
		commands.WithoutAuth(commands.Barrier(commands.Connection("hello", commands.AtLeast(1), "Describes this server and chooses protocol 2 or 3.", h.hello, arg.Optional(protocol)))),
		commands.WithoutAuth(commands.Barrier(commands.Connection("auth", commands.AtLeast(2), "Authenticates the client.", h.auth, arg.Optional(arg.Text("username")), arg.Text("password")))),
		commands.Barrier(commands.Connection("select", commands.Exactly(2), "Moves the connection to another database of the masters.", h.selectDatabase, arg.Integer("index"))),
		commands.WhileSubscribed(commands.WithoutAuth(commands.Barrier(commands.Connection("reset", commands.Exactly(1), "Returns the connection to its initial state; locks stay.", h.reset)))),
		commands.WhileSubscribed(commands.WithoutAuth(commands.Barrier(commands.Connection("quit", commands.AtLeast(1), "Closes the connection after all earlier replies.", h.quit)))),
	}
}

func (h *handlers) clientRows() []*commands.Command {
	client := commands.Connection("client", commands.AtLeast(2), "Shows and changes properties of this connection.", nil)
	client.Barrier = changesClient
	onOff := arg.OneOf("enabled", arg.Word("ON"), arg.Word("OFF"))
	attribute := arg.OneOf("attribute", arg.Option("LIB-NAME", arg.Text("libname")), arg.Option("LIB-VER", arg.Text("libver")))
	client.Parts = []*commands.Command{
		commands.Connection("caching", commands.Exactly(3), "With CLIENT TRACKING: whether what the next command reads is tracked.", h.clientCaching, arg.OneOf("mode", arg.Word("YES"), arg.Word("NO"))),
		commands.Connection("getname", commands.Exactly(2), "The name of this connection, or nil.", h.clientGetName),
		commands.Connection("getredir", commands.Exactly(2), "The connection that receives the invalidations of this one: 0 = itself, -1 = there is no tracking.", h.clientGetRedir),
		commands.Connection("id", commands.Exactly(2), "The number of this connection, unique in this daemon.", h.clientID),
		commands.Connection("info", commands.Exactly(2), "Describes this connection in one line.", h.clientInfo),
		commands.OfCategory(access.CategoryAdmin, commands.Connection("kill", commands.AtLeast(3), "Closes connections by address or filter (ID, ADDR, USER, SKIPME).", h.clientKill, arg.Multiple(arg.Text("filter")))),
		commands.Connection("list", commands.AtLeast(2), "Lists the connections of the client's user, for admins all connections.", h.clientList, arg.Optional(arg.Option("ID", arg.Multiple(arg.Integer("client-id"))))),
		commands.Connection("no-evict", commands.Exactly(3), "Accepted: nothing is ever evicted.", h.clientSwitch, onOff),
		commands.Connection("no-touch", commands.Exactly(3), "Accepted: no command changes what would be evicted.", h.clientSwitch, onOff),
		commands.Connection("reply", commands.Exactly(3), "Turns the replies to this connection on or off.", h.clientReply, arg.OneOf("action", arg.Word("ON"), arg.Word("OFF"), arg.Word("SKIP"))),
		commands.Connection("setinfo", commands.Exactly(4), "Sets the name or version of the client library.", h.clientSetInfo, attribute),
		commands.Connection("setname", commands.Exactly(3), "Names this connection.", h.clientSetName, arg.Text("connection-name")),
		commands.Connection("tracking", commands.AtLeast(3), "Sends an invalidation when a lock that this connection read or took is released, expires or changes hands.", h.clientTracking, onOff,
			arg.Optional(arg.Option("REDIRECT", arg.Integer("client-id"))), arg.Optional(arg.Multiple(arg.Option("PREFIX", arg.Text("prefix")))), arg.Optional(arg.Word("BCAST")),
			arg.Optional(arg.Word("OPTIN")), arg.Optional(arg.Word("OPTOUT")), arg.Optional(arg.Word("NOLOOP"))),
		commands.Connection("trackinginfo", commands.Exactly(2), "What CLIENT TRACKING has set for this connection.", h.clientTrackingInfo),
	}
	return []*commands.Command{client}
}

func (h *handlers) channelRows() []*commands.Command {
	channels := arg.Multiple(arg.Text("channel"))
	patterns := arg.Multiple(arg.Text("pattern"))
	return []*commands.Command{
		commands.OfCategory(access.CategoryEvents, commands.WhileSubscribed(commands.Barrier(commands.Connection("subscribe", commands.AtLeast(2), "Subscribes to the events of locks, each on channel dlock:<key>.", h.subscribe, channels)))),
		commands.WhileSubscribed(commands.Barrier(commands.Connection("unsubscribe", commands.AtLeast(1), "Ends subscriptions, all of them without an argument.", h.unsubscribe, arg.Optional(channels)))),
		commands.OfCategory(access.CategoryEvents, commands.WhileSubscribed(commands.Barrier(commands.Connection("psubscribe", commands.AtLeast(2), "Subscribes to all channels that match a pattern.", h.psubscribe, patterns)))),
		commands.WhileSubscribed(commands.Barrier(commands.Connection("punsubscribe", commands.AtLeast(1), "Ends subscriptions, all of them without an argument.", h.punsubscribe, arg.Optional(patterns)))),
		commands.Connection("publish", commands.Exactly(3), "Always 0: no subscriber receives the message.", commands.Always(commands.Int(0)), arg.Text("channel"), arg.Text("message")),
	}
}

func (h *handlers) serverRows() []*commands.Command {
	config := commands.Connection("config", commands.AtLeast(2), "Shows the options of this daemon.", nil)
	config.Parts = []*commands.Command{
		commands.OfCategory(access.CategoryInfo, commands.Connection("get", commands.AtLeast(3), "Options whose names match the patterns, with their values.", h.configGet, arg.Multiple(arg.Text("parameter")))),
	}
	return []*commands.Command{
		commands.CommandRow(h.deps),
		config,
		commands.OfCategory(access.CategoryInfo, commands.Connection("info", commands.AtLeast(1), "Statistics of this daemon and its masters, by sections.", h.info, arg.Optional(arg.Multiple(arg.Text("section"))))),
		commands.Connection("role", commands.Exactly(1), "Always a master without replicas.", commands.Always(commands.Array(commands.Bulk("master"), commands.Int(0), commands.Array()))),
		commands.Connection("time", commands.Exactly(1), "Seconds and microseconds of this daemon's clock.", h.clock),
		commands.Connection("dbsize", commands.Exactly(1), "Always 0: the daemon keeps no keys.", commands.Always(commands.Int(0))),
		commands.Connection("wait", commands.Exactly(3), "Always 0: there are no replicas.", h.wait, arg.Integer("numreplicas"), arg.Integer("timeout")),
		commands.Connection("readonly", commands.Exactly(1), "Accepted and without effect.", commands.Always(commands.OK)),
		commands.Connection("readwrite", commands.Exactly(1), "Accepted and without effect.", commands.Always(commands.OK)),
		clusterNode(h.deps.Cluster).row(),
	}
}
