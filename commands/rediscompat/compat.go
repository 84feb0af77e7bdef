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
	// keysText lists those that match the pattern ARGV[2], in the same order everywhere.
	keysText = `local prefix, found = ARGV[1], {}
for _, key in ipairs(redis.call('KEYS', ARGV[2])) do
  local name = string.sub(key, #prefix + 1)
  if string.sub(key, 1, #prefix) == prefix and string.sub(name, 1, 9) ~= 'redlockd:' then found[#found + 1] = name end
end
table.sort(found)
return found`
)

// compatTest sends such commands to all masters.
type compatTest struct {
	masters   commands.RedisCompat // nil without --compat-test
	databases int
}

func newCompatTest(deps commands.Deps) compatTest {
	t := compatTest{databases: deps.Databases}
	if deps.CompatTest {
		t.masters = deps.RedisCompat
	}
	return t
}

// on reports whether the daemon serves a test suite.
func (t *compatTest) on() bool { return t.masters != nil }

func (t *compatTest) rows() []*commands.Command {
	if !t.on() {
		return nil
	}
	key := arg.Key()
	row := func(name string, a commands.Arity, summary string, handle commands.Handler, args ...arg.Spec) *commands.Command {
		return &commands.Command{
			Name: name, Arity: a, Category: access.CategoryForce, Since: commands.FirstVersion, Redis: true,
			Summary: summary, Flags: []string{"write"}, Args: args, Handle: handle,
		}
	}
	members := arg.Multiple(arg.Text("element"))
	return []*commands.Command{
		row("flushdb", commands.AtLeast(1), "Empties this database but for the daemon's own records (--compat-test).", t.flushDB),
		row("flushall", commands.AtLeast(1), "Empties all databases but for the daemon's own records (--compat-test).", t.flushAll),
		row("keys", commands.Exactly(2), "The keys that match a pattern, without the daemon's own (--compat-test).", t.keysLike, arg.Text("pattern")),
		row("persist", commands.Exactly(2), "As in Redis, on every master (--compat-test).", t.forwardKey, key),
		row("sadd", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("lpush", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("rpush", commands.AtLeast(3), "As in Redis, on every master (--compat-test).", t.forwardKey, key, members),
		row("llen", commands.Exactly(2), "As in Redis, on every master (--compat-test).", t.forwardKey, key),
	}
}

// forward sends a command to all masters; names are the words that get the key prefix.
func (t *compatTest) forward(c *commands.Call, words []string, names ...int) error {
	completer := c.Completer
	t.masters.Forward(c.Batch, redlock.ForwardRequest{DB: c.Client.DB, Words: words, Names: names}, func(r pool.Reply, err error) {
		if err != nil {
			completer.Complete(commands.Failure(err))
			return
		}
		completer.Complete(ofScript(r))
	})
	return nil
}

// forwardKey forwards a command whose key is its first argument.
func (t *compatTest) forwardKey(c *commands.Call) error {
	if _, err := arg.ParseKey(c.Args[1]); err != nil || !mayForce(c) {
		return err
	}
	return t.forward(c, c.Args, 1)
}

// forwardScript is for one that finds its keys itself.
func (t *compatTest) forwardScript(c *commands.Call, text string, args []string) error {
	if !mayForce(c) {
		return nil
	}
	return t.forward(c, append([]string{"EVAL", text, "0"}, args...))
}

func (t *compatTest) flushDB(c *commands.Call) error {
	db := strconv.Itoa(c.Client.DB)
	return t.empty(c, db, db)
}

func (t *compatTest) flushAll(c *commands.Call) error {
	return t.empty(c, "0", strconv.Itoa(t.databases-1))
}

func (t *compatTest) empty(c *commands.Call, first, last string) error {
	if len(c.Args) > 2 || len(c.Args) == 2 && !arg.IsWord(c.Args[1], "ASYNC") && !arg.IsWord(c.Args[1], "SYNC") {
		return commands.RedisText("syntax error")
	}
	return t.forward(c, []string{"EVAL", emptyText, "0", "", first, last, strconv.Itoa(c.Client.DB)}, 3)
}

// keysLike gives both the prefix and the pattern the key prefix.
func (t *compatTest) keysLike(c *commands.Call) error {
	return t.forward(c, []string{"EVAL", keysText, "0", "", c.Args[1]}, 3, 4)
}
