// The rows of locks.

package commands

import "redlockd/commands/access"

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
