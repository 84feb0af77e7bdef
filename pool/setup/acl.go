// ACL: the commands that the daemon's user needs on a master, those of
// configs/master-acl.txt, each with a call by which Check tests the permission.

package setup

import (
	"context"
	"slices"
	"strings"

	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// aclRule is a command as the rules of a user name it, and a call of it that does
// no harm: it reads, fails at its arguments, or finds nothing. $ is a key that
// nothing else uses, and a channel. Without a call the permission is tested elsewhere.
type aclRule struct{ name, call string }

var (
	// connectionRules are the commands that connections send.
	connectionRules = []aclRule{
		{"auth", ""}, {"hello", ""}, // without them there is no connection
		{"config|get", ""},  // may be refused: such a master is not durable, which Check reports
		{"subscribe", ""},   // needs a connection of its own, see maySubscribe
		{"client|list", ""}, // may be refused: the commands of operators read the daemons from it
		{"ping", "PING"}, {"select", "SELECT 0"}, {"info", "INFO server"}, {"time", "TIME"},
		{"client|id", "CLIENT ID"}, {"client|setname", "CLIENT SETNAME redlockd"}, {"client|kill", "CLIENT KILL ID 0"}, // no client has this number
		{"client|tracking", "CLIENT TRACKING OFF"}, {"client|caching", "CLIENT CACHING YES"}, // an error where nothing is tracked
		{"publish", "PUBLISH $ x"}, {"pubsub|numsub", "PUBSUB NUMSUB $"}, {"scan", "SCAN 0 COUNT 1"},
		{"script|load", "SCRIPT LOAD return"}, {"eval", "EVAL return 0"}, {"evalsha", "EVALSHA 0000000000000000000000000000000000000000 0"},
	}
	// scriptRules are the commands that scripts call, ours and those of lock libraries. The
	// last ones delete what the others write, in the same step.
	scriptRules = []aclRule{
		{"get", "GET $"}, {"set", "SET $ x XX PX 1"}, {"exists", "EXISTS $"}, {"type", "TYPE $"},
		{"pttl", "PTTL $"}, {"pexpiretime", "PEXPIRETIME $"}, {"pexpireat", "PEXPIREAT $ 1"},
		{"zadd", "ZADD $ XX GT CH 1 m"}, {"zrange", "ZRANGE $ 0 -1"}, {"zrangebyscore", "ZRANGEBYSCORE $ 0 0"}, {"zscore", "ZSCORE $ m"}, {"zmscore", "ZMSCORE $ m"},
		{"zcard", "ZCARD $"}, {"zcount", "ZCOUNT $ 0 0"}, {"zrem", "ZREM $ m"}, {"zremrangebyscore", "ZREMRANGEBYSCORE $ 0 0"},
		{"strlen", "STRLEN $"}, {"hlen", "HLEN $"}, {"hget", "HGET $ f"}, {"hmget", "HMGET $ f"}, {"hgetall", "HGETALL $"}, {"hdel", "HDEL $ f"},
		{"hset", "HSET $ f v f"}, {"mset", "MSET $ x $"}, {"msetnx", "MSETNX $ x $"}, // a value is missing
		{"setex", "SETEX $ 0 x"}, {"psetex", "PSETEX $ 0 x"}, // no time at all
		{"ttl", "TTL $"}, {"mget", "MGET $"}, {"getrange", "GETRANGE $ 0 0"}, {"expire", "EXPIRE $ 1"}, {"expireat", "EXPIREAT $ 1"},
		{"setnx", "SETNX $ x"}, {"lpush", "LPUSH $ x"}, {"pexpire", "PEXPIRE $ 1"}, {"unlink", "UNLINK $"}, {"del", "DEL $"},
	}
)

// aclProbeScript makes the calls of ARGV and returns the error of each, or an empty text.
const aclProbeScript = `
local said = {}
for i, line in ipairs(ARGV) do
  local call = {}
  for word in string.gmatch(line, '%S+') do call[#call + 1] = word == '$' and KEYS[1] or word end
  local reply = redis.pcall(unpack(call))
  said[i] = type(reply) == 'table' and reply.err or ''
end
return said`

// permissions finds the commands that the daemon's user may not run.
func (g *group) permissions(ctx context.Context, f *finding, link wire.Link) {
	own := g.options.KeyPrefix + "redlockd:events:check"
	inScripts := wire.Words("EVAL", aclProbeScript, "1", own)
	for _, r := range scriptRules {
		inScripts.Args = append(inScripts.Args, r.call)
	}
	calls := []wire.Command{inScripts}
	names := []string{"eval"}
	for _, r := range connectionRules {
		if r.call != "" {
			calls = append(calls, wire.Words(strings.Split(strings.ReplaceAll(r.call, "$", own), " ")...))
			names = append(names, r.name)
		}
	}
	replies, err := wire.Ask(link, calls...)
	if err != nil {
		return
	}
	var missing []string
	for i, r := range replies {
		if r.Err != nil && unusable(r.Err.Error()) {
			missing = append(missing, names[i])
		}
	}
	for i, text := range replies[0].Items {
		if i < len(scriptRules) && unusable(text.Str) && (scriptRules[i].name != "pexpiretime" || wire.IsDenied(text.Str)) { // Redis 6.2 has none
			missing = append(missing, scriptRules[i].name)
		}
	}
	if !g.maySubscribe(ctx, f.master, own) {
		missing = append(missing, "subscribe")
	}
	slices.Sort(missing)
	if missing = slices.Compact(missing); len(missing) > 0 {
		f.problem("its user may not %s: allow the commands of configs/master-acl.txt, and rename none", strings.Join(missing, ", "))
		return
	}
	for _, key := range []string{admission.ConfigurationKey, g.sealKey()} {
		if !mayUse(link, key) {
			f.problem("its user may not use the key %s, which stands without --key-prefix: allow ~%[1]s, too", key)
		}
	}
}

// unusable reports whether an error means that the command is denied, or renamed on the server.
func unusable(text string) bool {
	return wire.IsDenied(text) || strings.Contains(strings.ToLower(text), "unknown ") // command, or Redis command
}

// mayUse is false only if the master denies reading or writing a hash. It changes nothing: no
// field has this name.
func mayUse(link wire.Link, key string) bool {
	const field = "redlockd check"
	replies, err := wire.Ask(link, wire.Words("HGET", key, field), wire.Words("HDEL", key, field))
	return err != nil || !slices.ContainsFunc(replies, func(r wire.Reply) bool { return r.Err != nil && wire.IsDenied(r.Err.Error()) })
}

// maySubscribe is false only if the master denies it.
func (g *group) maySubscribe(ctx context.Context, m wire.Master, channel string) bool {
	if g.options.Dialer != nil { // it leads to something else than a socket
		return true
	}
	ctx, end := context.WithTimeout(ctx, g.options.DialTimeout())
	defer end()
	err := wire.Subscribe(ctx, m, channel, g.options.DialTimeout(), end, func(string) {})
	return !wire.IsDenied(err.Error())
}
