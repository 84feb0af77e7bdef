// The rows of the Redis commands by which code for one Redis takes, reads and
// releases a lock.

package rediscompat

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{leasePolicy: leasePolicy{&deps}, deps: deps, scripts: scriptCache{stats: deps.DropinStats}, nextIDs: nextIDs{ids: deps.IDs, stats: deps.DropinStats}}
	return append(h.dropinRows(), h.compatRows()...)
}

func (h *handlers) dropinRows() []*commands.Command {
	key, value := arg.Key(), arg.Text("value")
	compared := []arg.Spec{
		arg.Option("IFEQ", arg.Text("value")), arg.Option("IFNE", arg.Text("value")),
		arg.Option("IFDEQ", arg.Text("digest")), arg.Option("IFDNE", arg.Text("digest")),
	}
	when := arg.OneOf("condition", arg.Word("NX"), arg.Word("XX"), compared[0], compared[1], compared[2], compared[3])
	expiry := arg.OneOf("expiration", arg.Option("EX", arg.Integer("seconds")), arg.Option("PX", arg.Integer("milliseconds")),
		arg.Option("EXAT", arg.Integer("unix-time-seconds")), arg.Option("PXAT", arg.Integer("unix-time-milliseconds")))
	ends := arg.Optional(arg.OneOf("condition", arg.Word("NX"), arg.Word("XX"), arg.Word("GT"), arg.Word("LT")))
	row := func(name string, a commands.Arity, category, summary string, handle commands.Handler, args ...arg.Spec) *commands.Command {
		flag := "write"
		if category == access.CategoryRead {
			flag = "readonly"
		}
		return &commands.Command{
			Name: name, Arity: a, Category: category, Redis: true,
			Summary: summary, Flags: []string{flag, "fast"}, Args: args, Handle: handle,
		}
	}
	rows := []*commands.Command{
		commands.BarrierWhen(setReads, row("set", commands.AtLeast(3), access.CategoryLock, "Takes a lock with NX: OK, or nil if it is held. XX, IFEQ and IFDEQ change one that is held, IFNE and IFDNE also take a free one; XX, IFNE and IFDNE need the category force.", h.set, key, value, arg.Optional(when), arg.Optional(expiry))),
		row("msetex", commands.AtLeast(4), access.CategoryLock, "Takes several locks with NX, all or none, each with its own value: 1, or 0 if one is held.", h.setMany, arg.Integer("numkeys"), arg.Multiple(arg.Block("data", key, value)), arg.Optional(arg.Word("NX")), arg.Optional(expiry)),
		row("setex", commands.Exactly(4), access.CategoryLock, "Only in a transaction, of a lock that was watched and read: takes it, or gives it this lease.", refusePlainWrite, key, arg.Integer("seconds"), value),
		row("psetex", commands.Exactly(4), access.CategoryLock, "Only in a transaction, of a lock that was watched and read: takes it, or gives it this lease.", refusePlainWrite, key, arg.Integer("milliseconds"), value),
		row("hsetnx", commands.Exactly(4), access.CategoryLock, "Refused: a field of a hash is no lock.", refuseHashLock, key, arg.Text("field"), value),
		row("setnx", commands.Exactly(3), access.CategoryLock, "Takes a lock without an expiry (--no-ttl): 1, or 0 if it is held.", h.setnx, key, value),
		row("get", commands.Exactly(2), access.CategoryRead, "The value with which a quorum holds the lock, or nil; of redlockd:fence:key its fence.", h.get, arg.KeyWithin("key")),
		row("digest", commands.Exactly(2), access.CategoryRead, "The XXH3 digest of the value with which the lock is held, for IFDEQ and IFDNE, or nil.", h.viewing(digest), key),
		row("pttl", commands.Exactly(2), access.CategoryRead, "How many milliseconds a lock is held at least: -2 not at all, -1 without an end.", h.viewing(pttl), key),
		row("ttl", commands.Exactly(2), access.CategoryRead, "How many seconds a lock is held: -2 not at all, -1 without an end.", h.viewing(ttl(h.deps.MasterTimeout)), key),
		row("exists", commands.AtLeast(2), access.CategoryRead, "How many of the keys are held.", h.exists, arg.Multiple(key)),
		row("type", commands.Exactly(2), access.CategoryRead, "What holds the key: string for one holder, zset for readers, hash for permits, none.", h.viewing(kindOf), key),
		row("hexists", commands.Exactly(3), access.CategoryRead, "Whether an owner (the field) holds a reentrant lock: 1 or 0.", h.levels(hasLevel), key, arg.Text("field")),
		row("hget", commands.Exactly(3), access.CategoryRead, "How many levels of a reentrant lock an owner (the field) has, or nil.", h.levels(levelCount), key, arg.Text("field")),
		row("strlen", commands.Exactly(2), access.CategoryRead, "The length of the value with which the lock is held.", h.viewing(strlen), key),
		alsoForce(commands.Barrier(row("del", commands.AtLeast(2), access.CategoryLock, "Releases locks regardless of their holders and returns their number.", h.del, arg.Multiple(key)))),
		alsoForce(commands.Barrier(row("unlink", commands.AtLeast(2), access.CategoryLock, "Releases locks regardless of their holders and returns their number.", h.del, arg.Multiple(key)))),
		commands.BarrierWhen(delReads, row("delex", commands.AtLeast(2), access.CategoryLock, "Releases a lock whose value meets the condition: 1, or 0. IFNE, IFDNE and no condition need the category force.", h.delIf, key, arg.Optional(arg.OneOf("condition", compared...)))),
		row("delifeq", commands.Exactly(3), access.CategoryLock, "Releases a lock that is held with the value: 1, or 0.", h.delIf, key, value),
		alsoForce(commands.BarrierWhen(expireReads, row("expire", commands.AtLeast(3), access.CategoryLock, "Gives a lock a lease from now, regardless of its holder: 1, or 0 if it is free.", h.expire, key, arg.Integer("seconds"), ends))),
		alsoForce(commands.BarrierWhen(expireReads, row("pexpire", commands.AtLeast(3), access.CategoryLock, "Gives a lock a lease from now, regardless of its holder: 1, or 0 if it is free.", h.pexpire, key, arg.Integer("milliseconds"), ends))),
	}
	return append(append(rows, h.transactionRows(row)...), h.scriptRows(row)...)
}

// alsoForce marks a row whose commands take locks from their holders.
func alsoForce(c *commands.Command) *commands.Command {
	c.Also = access.CategoryForce
	return c
}

type rowMaker func(name string, a commands.Arity, category, summary string, handle commands.Handler, args ...arg.Spec) *commands.Command

func (h *handlers) transactionRows(row rowMaker) []*commands.Command {
	keys := arg.Multiple(arg.Key())
	rows := []*commands.Command{
		row("watch", commands.AtLeast(2), access.CategoryLock, "Begins a comparison: EXEC does nothing if one of the locks has changed until then.", h.watch, keys),
		row("unwatch", commands.Exactly(1), access.CategoryLock, "Ends the comparison.", h.unwatch),
		row("multi", commands.Exactly(1), access.CategoryLock, "Begins a transaction: one command on locks, or PTTL and GET of one lock.", h.multi),
		row("exec", commands.Exactly(1), access.CategoryLock, "Does the command if the watched locks have not changed: its answer in a list, or nil.", h.exec),
		row("discard", commands.Exactly(1), access.CategoryLock, "Makes no change.", h.discard),
		row("blpop", commands.AtLeast(3), access.CategoryRead, "Waits until lock:name is free: the key and 1, or nil after the time.", h.blpop, arg.KeyWithin("lock-signal:name"), arg.Text("seconds")),
	}
	for _, one := range rows {
		commands.Barrier(one)
	}
	return rows
}

func (h *handlers) scriptRows(row rowMaker) []*commands.Command {
	script, numkeys := arg.Text("script"), arg.Integer("numkeys")
	keys, args := arg.Optional(arg.Multiple(arg.Key())), arg.Optional(arg.Multiple(arg.Text("arg")))
	evaluates := func(name, summary string, bySHA, reads bool) *commands.Command {
		category, first := access.CategoryLock, script
		if reads {
			category = access.CategoryRead
		}
		if bySHA {
			first = arg.Text("sha1")
		}
		handle := func(c *commands.Call) error { return h.evaluate(c, bySHA, reads) }
		return commands.BarrierWhen(h.readsFirst, row(name, commands.AtLeast(3), category, summary, handle, first, numkeys, keys, args))
	}
	scripts := row("script", commands.AtLeast(2), access.CategoryLock, "Keeps the texts of scripts for EVALSHA.", nil)
	scripts.Parts = []*commands.Command{
		row("load", commands.Exactly(3), access.CategoryLock, "Keeps a text for this user: its SHA1.", h.scripts.load, script),
		row("exists", commands.AtLeast(3), access.CategoryLock, "Which texts are kept for this user.", h.scripts.exists, arg.Multiple(arg.Text("sha1"))),
		row("flush", commands.Between(2, 3), access.CategoryLock, "Forgets the texts of this user.", h.scripts.flush, arg.Optional(arg.OneOf("flush-type", arg.Word("ASYNC"), arg.Word("SYNC")))),
	}
	return []*commands.Command{
		evaluates("eval", "Does what the script of a lock library does, on a quorum of masters, and answers as the script would; one that takes another's lock needs the category force.", false, false),
		evaluates("evalsha", "EVAL for a script that was sent before.", true, false),
		evaluates("eval_ro", "EVAL for a script that changes nothing.", false, true),
		evaluates("evalsha_ro", "EVALSHA for a script that changes nothing.", true, true),
		scripts,
	}
}
