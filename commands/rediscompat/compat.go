// Commands that test suites of lock libraries send to a Redis beside locks, with
// --compat-test. Every master receives them, and an answer that a quorum gives is
// the answer. Never in production: any client may overwrite any lock.

package rediscompat

import (
	"strconv"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/pool"
	"redlockd/redlock"
)

// Both leave the daemon's own records alone: without them a master has lost its
// memory and does not vote. ARGV 1 is the key prefix.
const (
	// emptyText deletes what there is in the databases ARGV[2] to ARGV[3]; ARGV[4] is the
	// one to come back to.
	emptyText = `local prefix = ARGV[1]
for db = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  redis.call('SELECT', db)
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local name = string.sub(key, #prefix + 1)
    if string.sub(key, 1, #prefix) == prefix and string.sub(name, 1, 9) ~= 'redlockd:' then redis.call('DEL', key) end
  end
end
redis.call('SELECT', ARGV[4])
return redis.status_reply('OK')`
	// matchingText deletes the keys that match the pattern ARGV[1], which is a library's.
	matchingText = `local keys = redis.call('KEYS', ARGV[1])
for _, key in ipairs(keys) do redis.call('DEL', key) end
return #keys`
	// keysText lists those that match the pattern ARGV[2], in the same order everywhere.
	keysText = `local prefix, found = ARGV[1], {}
for _, key in ipairs(redis.call('KEYS', ARGV[2])) do
  local name = string.sub(key, #prefix + 1)
  if string.sub(key, 1, #prefix) == prefix and string.sub(name, 1, 9) ~= 'redlockd:' then found[#found + 1] = name end
end
table.sort(found)
return found`
)

func (h *handlers) compatRows() []*commands.Command {
	if !h.deps.CompatTest {
		return nil
	}
	key := arg.Key()
	row := func(name string, a commands.Arity, summary string, handle commands.Handler, args ...arg.Spec) *commands.Command {
		return &commands.Command{
			Name: name, Arity: a, Category: access.CategoryForce, Redis: true,
			Summary: summary, Flags: []string{"write"}, Args: args, Handle: handle,
		}
	}
	members := arg.Multiple(arg.Text("element"))
	return []*commands.Command{
		row("flushdb", commands.AtLeast(1), "Empties this database, its ids too, but for the daemon's own records (--compat-test).", func(c *commands.Call) error {
			return h.empty(c, c.Client.DB, c.Client.DB)
		}),
		row("flushall", commands.AtLeast(1), "Empties all databases, their ids too, but for the daemon's own records (--compat-test).", func(c *commands.Call) error {
			return h.empty(c, 0, h.deps.Databases-1)
		}),
		row("keys", commands.Exactly(2), "The keys that match a pattern, without the daemon's own (--compat-test).", func(c *commands.Call) error { // prefix and pattern get the key prefix
			return h.forward(c, []string{"EVAL", keysText, "0", "", c.Args[1]}, 3, 4)
		}, arg.Text("pattern")),
		row("persist", commands.Exactly(2), "As in Redis, on every master (--compat-test).", h.forwardKey, key),
		row("sadd", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", h.forwardKey, key, members),
		row("lpush", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", h.forwardKey, key, members),
		row("rpush", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", h.forwardKey, key, members),
		row("llen", commands.Exactly(2), "As in Redis, on every master (--compat-test).", h.forwardKey, key),
	}
}

// forward sends a command to all masters; names are the words that get the key prefix.
func (h *handlers) forward(c *commands.Call, words []string, names ...int) error {
	h.deps.RedisCompat.Forward(c.Batch, redlock.ForwardRequest{DB: c.Client.DB, Words: words, Names: names}, commands.Answer(c, func(r pool.Reply) commands.Reply { return ofDropin(ofMaster(r)) }))
	return nil
}

func (h *handlers) forwardKey(c *commands.Call) error {
	if _, err := arg.ParseKey(c.Args[1]); err != nil || !mayForce(c) {
		return err
	}
	return h.forward(c, c.Args, 1)
}

// deleteMatching deletes the keys that match a pattern, and replies with their number.
func (h *handlers) deleteMatching(c *commands.Call, pattern string) error {
	if !mayForce(c) {
		return nil
	}
	return h.forward(c, []string{"EVAL", matchingText, "0", pattern}, 3)
}

func (h *handlers) empty(c *commands.Call, first, last int) error {
	if len(c.Args) > 2 || len(c.Args) == 2 && !arg.IsWord(c.Args[1], "ASYNC") && !arg.IsWord(c.Args[1], "SYNC") {
		return commands.RedisText("syntax error")
	}
	deleteIDs(h.deps.IDs, first, last, func(err error) {
		if err == nil {
			c.Batch = nil // it has been sent
			err = h.forward(c, []string{"EVAL", emptyText, "0", "", strconv.Itoa(first), strconv.Itoa(last), strconv.Itoa(c.Client.DB)}, 3)
		}
		if err != nil {
			c.Reply(commands.Failure(err))
		}
	})
	return nil
}

// deleteIDs deletes the counters of databases, one after another: the daemons remember them, too.
func deleteIDs(ids commands.IDs, first, last int, done func(error)) {
	if first > last {
		done(nil)
		return
	}
	ids.ListCounters(first, func(names []redlock.Key, err error) {
		if err != nil {
			done(err)
			return
		}
		deleteEach(ids, first, names, func(err error) {
			if err != nil {
				done(err)
				return
			}
			deleteIDs(ids, first+1, last, done)
		})
	})
}

func deleteEach(ids commands.IDs, db int, names []redlock.Key, done func(error)) {
	if len(names) == 0 {
		done(nil)
		return
	}
	ids.ReadCounter(db, names[0], func(counter redlock.Counter, err error) {
		if err != nil {
			done(err)
			return
		}
		var value int64
		for _, m := range counter.Masters {
			value = max(value, m.Value)
		}
		ids.DeleteCounter(db, names[0], value, func(_ []redlock.CounterFate, err error) {
			if err != nil {
				done(err)
				return
			}
			deleteEach(ids, db, names[1:], done)
		})
	})
}
