// The rows of the Redis commands by which code for one Redis takes, reads and
// releases a lock.

package commands

import "redlockd/commands/access"

func (t *Table) dropinRows() []*command {
	key, value := keyArgument(), text("value")
	when := oneOf("condition", word("NX"), word("XX"), option("IFEQ", text("value")))
	expiry := oneOf("expiration", option("EX", integer("seconds")), option("PX", integer("milliseconds")),
		option("EXAT", integer("unix-time-seconds")), option("PXAT", integer("unix-time-milliseconds")))
	ifeq := option("IFEQ", text("value"))
	row := func(name string, a arity, category, summary string, handle handler, args ...argument) *command {
		flag := "write"
		if category == access.CategoryRead {
			flag = "readonly"
		}
		return &command{
			name: name, arity: a, category: category, since: firstVersion, redis: true,
			summary: summary, flags: []string{flag, "fast"}, args: args, handle: served(t.deps.RedisCompat != nil, handle),
		}
	}
	rows := []*command{
		row("set", atLeast(3), access.CategoryLock, "Takes a lock with NX: OK, or nil if it is held. XX and IFEQ change one that is held; XX needs the category force.", t.set, key, value, optional(when), optional(expiry)),
		row("setnx", exactly(3), access.CategoryLock, "Takes a lock without an expiry (--no-ttl): 1, or 0 if it is held.", t.setnx, key, value),
		row("get", exactly(2), access.CategoryRead, "The value with which a quorum holds the lock, or nil; of redlockd:fence:key its fence.", t.get, text("key")),
		row("pttl", exactly(2), access.CategoryRead, "How many milliseconds a lock is held at least: -2 not at all, -1 without an end.", t.pttl, key),
		row("ttl", exactly(2), access.CategoryRead, "How many seconds a lock is held: -2 not at all, -1 without an end.", t.ttl, key),
		row("exists", atLeast(2), access.CategoryRead, "How many of the keys are held.", t.exists, multiple(key)),
		row("type", exactly(2), access.CategoryRead, "What holds the key: string for one holder, zset for readers, hash for permits, none.", t.kindOf, key),
		row("strlen", exactly(2), access.CategoryRead, "The length of the value with which the lock is held.", t.strlen, key),
		alsoForce(barrier(row("del", atLeast(2), access.CategoryLock, "Releases locks regardless of their holders and returns their number.", t.del, multiple(key)))),
		alsoForce(barrier(row("unlink", atLeast(2), access.CategoryLock, "Releases locks regardless of their holders and returns their number.", t.del, multiple(key)))),
		row("delex", exactly(4), access.CategoryLock, "Releases a lock that is held with the value: 1, or 0.", t.delIfEqual, key, ifeq),
		row("delifeq", exactly(3), access.CategoryLock, "Releases a lock that is held with the value: 1, or 0.", t.delIfEqual, key, value),
		alsoForce(barrierWhen(expireDeletes, row("expire", exactly(3), access.CategoryLock, "Gives a lock a lease from now, regardless of its holder: 1, or 0 if it is free.", t.expire, key, integer("seconds")))),
		alsoForce(barrierWhen(expireDeletes, row("pexpire", exactly(3), access.CategoryLock, "Gives a lock a lease from now, regardless of its holder: 1, or 0 if it is free.", t.pexpire, key, integer("milliseconds")))),
	}
	return append(append(rows, t.transactionRows(row)...), t.scriptRows(row)...)
}

// alsoForce marks a row whose commands take locks from their holders.
func alsoForce(c *command) *command {
	c.also = access.CategoryForce
	return c
}

type rowMaker func(name string, a arity, category, summary string, handle handler, args ...argument) *command

func (t *Table) transactionRows(row rowMaker) []*command {
	keys := multiple(keyArgument())
	rows := []*command{
		row("watch", atLeast(2), access.CategoryLock, "Begins a comparison: GET reads the value that the lock must still have at EXEC.", t.watch, keys),
		row("unwatch", exactly(1), access.CategoryLock, "Ends the comparison.", t.unwatch),
		row("multi", exactly(1), access.CategoryLock, "Begins the one change: DEL, UNLINK, PEXPIRE or EXPIRE of a watched lock.", t.multi),
		row("exec", exactly(1), access.CategoryLock, "Makes the change if the lock still has the value: its answer in a list, or nil.", t.exec),
		row("discard", exactly(1), access.CategoryLock, "Makes no change.", t.discard),
		row("blpop", atLeast(3), access.CategoryRead, "Waits until lock:name is free: the key and 1, or nil after the time.", t.blpop, text("lock-signal:name"), text("seconds")),
	}
	for _, one := range rows {
		barrier(one)
	}
	return rows
}

func (t *Table) scriptRows(row rowMaker) []*command {
	script, numkeys := text("script"), integer("numkeys")
	keys, args := optional(multiple(keyArgument())), optional(multiple(text("arg")))
	evaluates := func(name, summary string, handle handler, first argument) *command {
		category := access.CategoryLock
		if name == "eval_ro" || name == "evalsha_ro" {
			category = access.CategoryRead
		}
		return barrierWhen(t.readsFirst, row(name, atLeast(3), category, summary, handle, first, numkeys, keys, args))
	}
	scripts := row("script", atLeast(2), access.CategoryLock, "Keeps the texts of scripts for EVALSHA.", nil)
	scripts.handle = nil
	scripts.parts = []*command{
		row("load", exactly(3), access.CategoryLock, "Keeps a text for this user: its SHA1.", t.scriptLoad, script),
		row("exists", atLeast(3), access.CategoryLock, "Which texts are kept for this user.", t.scriptExists, multiple(text("sha1"))),
		row("flush", between(2, 3), access.CategoryLock, "Forgets the texts of this user.", t.scriptFlush, optional(oneOf("flush-type", word("ASYNC"), word("SYNC")))),
	}
	return []*command{
		evaluates("eval", "Runs the script of a lock library on a quorum of masters and answers as it does there; one that may take another's lock needs the category force.", t.eval, script),
		evaluates("evalsha", "EVAL for a script that was sent before.", t.evalSHA, text("sha1")),
		evaluates("eval_ro", "EVAL for a script that changes nothing.", t.evalRO, script),
		evaluates("evalsha_ro", "EVALSHA for a script that changes nothing.", t.evalSHARO, text("sha1")),
		scripts,
	}
}
