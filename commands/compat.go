// Commands that test suites of lock libraries send to a Redis beside locks, with
// --compat-test. Every master receives them, and an answer that a quorum gives is
// the answer. Never in production: any client may overwrite any lock.

package commands

import (
	"strconv"

	"redlockd/commands/access"
	"redlockd/pool"
	"redlockd/redlock"
)

// compatWarning is shown by INFO.
const compatWarning = "compat-test is on: any client may overwrite any lock and empty the masters; never in production"

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
	// keysText lists those that match the pattern ARGV[2], in the same order everywhere.
	keysText = `local prefix, found = ARGV[1], {}
for _, key in ipairs(redis.call('KEYS', ARGV[2])) do
  local name = string.sub(key, #prefix + 1)
  if string.sub(key, 1, #prefix) == prefix and string.sub(name, 1, 9) ~= 'redlockd:' then found[#found + 1] = name end
end
table.sort(found)
return found`
)

func (t *Table) compatRows() []*command {
	if t.deps.CompatTest == nil {
		return nil
	}
	key := keyArgument()
	row := func(name string, a arity, summary string, handle handler, args ...argument) *command {
		return &command{
			name: name, arity: a, category: access.CategoryForce, since: firstVersion, redis: true,
			summary: summary, flags: []string{"write"}, args: args, handle: handle,
		}
	}
	members := multiple(text("element"))
	return []*command{
		row("flushdb", atLeast(1), "Empties this database but for the daemon's own records (--compat-test).", t.flushDB),
		row("flushall", atLeast(1), "Empties all databases but for the daemon's own records (--compat-test).", t.flushAll),
		row("keys", exactly(2), "The keys that match a pattern, without the daemon's own (--compat-test).", t.keysLike, text("pattern")),
		row("persist", exactly(2), "As in Redis, on every master (--compat-test).", t.forwardKey, key),
		row("sadd", atLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("lpush", atLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("rpush", atLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("llen", exactly(2), "As in Redis, on every master (--compat-test).", t.forwardKey, key),
	}
}

// forward sends a command to all masters; names are the words that get the key prefix.
func (t *Table) forward(c *Call, words []string, names ...int) error {
	completer := c.Completer
	t.deps.CompatTest.Forward(c.Batch, redlock.ForwardRequest{DB: c.Client.DB, Words: words, Names: names}, func(r pool.Reply, err error) {
		if err != nil {
			completer.Complete(failure(err))
			return
		}
		completer.Complete(ofScript(r))
	})
	return nil
}

// forwardKey forwards a command whose key is its first argument.
func (t *Table) forwardKey(c *Call) error {
	if _, err := parseKey(c.Args[1]); err != nil || !mayForce(c) {
		return err
	}
	return t.forward(c, c.Args, 1)
}

// forwardScript is for one that finds its keys itself.
func (t *Table) forwardScript(c *Call, text string, args []string) error {
	if !mayForce(c) {
		return nil
	}
	return t.forward(c, append([]string{"EVAL", text, "0"}, args...))
}

func (t *Table) flushDB(c *Call) error {
	db := strconv.Itoa(c.Client.DB)
	return t.empty(c, db, db)
}

func (t *Table) flushAll(c *Call) error { return t.empty(c, "0", strconv.Itoa(t.deps.Databases-1)) }

func (t *Table) empty(c *Call, first, last string) error {
	if len(c.Args) > 2 || len(c.Args) == 2 && !isWord(c.Args[1], "ASYNC") && !isWord(c.Args[1], "SYNC") {
		return redisText("syntax error")
	}
	return t.forward(c, []string{"EVAL", emptyText, "0", "", first, last, strconv.Itoa(c.Client.DB)}, 3)
}

// keysLike gives both the prefix and the pattern the key prefix.
func (t *Table) keysLike(c *Call) error {
	return t.forward(c, []string{"EVAL", keysText, "0", "", c.Args[1]}, 3, 4)
}
