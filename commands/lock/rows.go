// The rows of locks.

package lock

import (
	"slices"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{deps}
	key, token, ttl := arg.Key(), arg.Text("token"), arg.Integer("ttl")
	mode := arg.OneOf("mode", arg.Word("SHARED"), arg.Option("LIMIT", arg.Integer("n")), arg.Word("REENTRANT"))
	delay := arg.Optional(arg.Option("DELAY", arg.Integer("ms")))
	options := []arg.Spec{
		arg.Optional(arg.Word("FAIR")), delay, arg.Optional(arg.Option("WAIT", arg.Integer("ms"))), arg.Optional(arg.Option("TOKEN", token)),
		arg.Optional(arg.Option("META", arg.Text("text"))), arg.Optional(arg.Block("hold", arg.Word("HOLD"), arg.Optional(arg.Integer("max-ms")))),
		arg.Optional(arg.Option("MAXHOLD", arg.Integer("ms"))),
	}
	return []*commands.Command{
		{Name: "dlock", Arity: commands.AtLeast(3), Category: access.CategoryLock, Flags: []string{"write", "fast"},
			Summary: "Takes a lock for ttl milliseconds (30000 = 30 s): [token, validity, fence], or nil if another token holds it. After WAIT, DEXTEND confirms it. With DELAY the key stays taken that much longer.",
			Tried:   []string{"lock", "acquire", "dacquire"},
			Args:    slices.Concat([]arg.Spec{key, ttl, arg.Optional(mode)}, options), Handle: h.dlock, Barrier: blocksLock},
		{Name: "dunlock", Arity: commands.Between(2, 5), Category: access.CategoryLock, Flags: []string{"write", "fast"},
			Summary: "Releases a lock: 1, or 0 if the token does not hold it. Without a token: what this connection last acquired on key. With KEEP the lock ends that much later, if it was to last longer. With REENTRANT it releases one level of the owner: how many are left, or nil.",
			Tried:   []string{"unlock", "release", "drelease", "dfree"},
			Args:    []arg.Spec{key, arg.Optional(arg.Block("holder", token, arg.Optional(arg.OneOf("how", arg.Option("KEEP", arg.Integer("ms")), arg.Word("REENTRANT")))))},
			Handle:  h.dunlock, Barrier: readsFirst},
		{Name: "dunlockall", Arity: commands.Exactly(1), Category: access.CategoryLock, Flags: []string{"write"},
			Summary: "Releases what this connection last acquired on each key, in every database: how many it still held.",
			Tried:   []string{"unlockall", "releaseall", "dreleaseall"}, Handle: h.dunlockall, Barrier: afterAll},
		{Name: "dextend", Arity: commands.Between(4, 6), Category: access.CategoryLock, Flags: []string{"write", "fast"},
			Summary: "Makes a lock last at least ttl milliseconds from now: its validity, or nil if the token does not hold it any more.",
			Tried:   []string{"extend", "renew", "drenew", "refresh", "drefresh"}, Args: []arg.Spec{key, token, ttl, delay}, Handle: h.dextend},
		{Name: "dmlock", Arity: commands.AtLeast(4), Category: access.CategoryLock, Flags: []string{"write"},
			Summary: "Takes all of the keys or none, with the reply of DLOCK. After WAIT, DMEXTEND confirms it.",
			Tried:   []string{"mlock", "multilock"},
			Args:    slices.Concat([]arg.Spec{ttl, arg.Integer("numkeys"), arg.Multiple(key), arg.Optional(arg.Word("SHARED"))}, options),
			Handle:  h.dmlock, Barrier: blocksLock},
		{Name: "dmunlock", Arity: commands.AtLeast(4), Category: access.CategoryLock, Flags: []string{"write"},
			Summary: "Releases the keys that the token holds and returns their number.",
			Tried:   []string{"munlock"}, Args: []arg.Spec{token, arg.Integer("numkeys"), arg.Multiple(key)}, Handle: h.dmunlock},
		{Name: "dmextend", Arity: commands.AtLeast(5), Category: access.CategoryLock, Flags: []string{"write"},
			Summary: "Makes all of the keys last at least ttl milliseconds from now: their validity, or nil unless the token holds every one.",
			Tried:   []string{"mextend"}, Args: []arg.Spec{token, ttl, arg.Integer("numkeys"), arg.Multiple(key), delay}, Handle: h.dmextend},
	}
}
