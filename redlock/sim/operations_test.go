package sim

// operations_test.go: random operations for a real and a simulated master.

import (
	"strconv"
	"time"
)

// uncompared are scripts that no arguments are known for yet: those of queues
// and of looking at locks.
func uncompared() []string {
	return []string{"enlist", "fair", "keep", "look", "note", "stepout", "view", "write"}
}

// pick is one of some words.
func (tw *twins) pick(words ...string) string { return words[tw.random.IntN(len(words))] }

func (tw *twins) key() string   { return tw.pick("k1", "k2", "k3") }
func (tw *twins) token() string { return tw.pick("alice", "bob", "carol") }

// end is a moment in ms: past, or far enough ahead to be there for a while.
func (tw *twins) end() string {
	now := time.Now().UnixMilli()
	if tw.random.IntN(6) == 0 {
		return strconv.FormatInt(now-1000-tw.random.Int64N(5000), 10)
	}
	return strconv.FormatInt((now+60_000+tw.random.Int64N(2000))/8*8+tw.random.Int64N(2)*tw.random.Int64N(8), 10)
}

// endOf is where a key ends now, or nearly: what guards look at.
func (tw *twins) endOf(key string) int64 {
	tw.tick()
	at := tw.server.pexpiretime([]string{"", key}).Int
	return at + tw.random.Int64N(5) - 2
}

func (tw *twins) tick() { tw.server.readClock(time.Now().UnixMicro() - epoch) }

func (tw *twins) number(limit int) string { return strconv.Itoa(tw.random.IntN(limit)) }

// worker is a token of a piece of work.
func (tw *twins) worker() (token, attempt string) {
	attempt = strconv.Itoa(1 + tw.random.IntN(3))
	return tw.pick("x", "y") + "." + attempt + ".3.5000." + strconv.Itoa(1+tw.random.IntN(900)), attempt
}

// commands are plain ones.
func (tw *twins) command() []string {
	key, token, end := tw.key(), tw.token(), tw.end()
	switch tw.random.IntN(24) {
	case 0, 1, 2:
		return []string{"SET", key, token, "NX", "PXAT", end}
	case 3:
		return []string{"SET", key, token}
	case 4:
		return []string{"SET", key, token, "XX", "PXAT", end}
	case 5:
		return []string{"GET", key}
	case 6, 7, 8:
		return []string{"DEL", key, tw.key()}
	case 9:
		return []string{"PEXPIREAT", key, end}
	case 10:
		return []string{"PEXPIREAT", key, end, tw.pick("NX", "XX", "GT", "LT")}
	case 11:
		return []string{"ZADD", key, tw.pick("XX", "NX", "GT", "LT"), end, token}
	case 12:
		return []string{"ZADD", key, "XX", "GT", end, token}
	case 13:
		return []string{"ZADD", key, end, token, tw.number(9), tw.token()}
	case 14:
		return []string{"ZSCORE", key, token}
	case 15:
		return []string{"ZREM", key, token}
	case 16:
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	case 17:
		return []string{"ZREMRANGEBYSCORE", key, "-inf", tw.pick("", "(") + end}
	case 18:
		return []string{"HSET", key, tw.pick("n", "1", "2", "s"), tw.pick("2", end+" "+token)}
	case 19:
		return []string{"HMGET", key, "n", "1", "nothing"}
	case 20:
		return []string{"HDEL", key, tw.pick("n", "1", "2", "s")}
	case 21:
		return []string{tw.pick("TYPE", "PEXPIRETIME", "ZCARD", "HLEN", "EXISTS", "PTTL", "HGETALL"), key}
	case 22:
		return []string{"HGET", key, tw.pick("n", "1")}
	}
	return []string{"PERSIST", key}
}

// script is a call of one of the product's own.
func (tw *twins) script(file string) []string {
	key, token, end := tw.key(), tw.token(), tw.end()
	call := func(keys []string, args ...string) []string {
		words := append([]string{"EVALSHA", tw.scripts[file], strconv.Itoa(len(keys))}, keys...)
		return append(words, args...)
	}
	one := []string{key}
	worker, attempt := tw.worker()
	switch file {
	case "acquire", "extend", "share":
		return call(one, token, end)
	case "release":
		lo, hi := "", ""
		if tw.random.IntN(2) == 0 {
			at := tw.endOf(key)
			lo, hi = strconv.FormatInt(at-1, 10), strconv.FormatInt(at+1, 10)
		}
		if tw.random.IntN(3) == 0 {
			return call(one, token, lo, hi, tw.pick("1", "2"))
		}
		return call(one, token, lo, hi)
	case "permit":
		return call(one, token, end, tw.pick("2", "2", "3"), tw.pick("1", "2", "3"), tw.pick("", "1"))
	case "multi":
		return call([]string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], token, end, tw.pick("", "1"))
	case "multiextend":
		return call([]string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], token, end)
	case "unupgrade":
		return call(one, token, strconv.FormatInt(tw.endOf(key), 10), tw.pick("", end))
	case "nextid":
		lo := tw.pick("1", "5", "9", "10", "9007199254740993", "9223372036854775800")
		n, _ := strconv.ParseInt(lo, 10, 64)
		return call(one, lo, strconv.FormatInt(n+tw.random.Int64N(7), 10), tw.pick("aa", "bb"), tw.pick("0", "0", "7", "9007199254740992"), tw.number(2))
	case "readid":
		return call(one, tw.pick("aa", "bb"), tw.number(2))
	case "reseed":
		return call(one, tw.pick("3", "9007199254740993", "12"), tw.pick("aa", "bb"))
	case "worktry":
		ms, _ := strconv.ParseInt(end, 10, 64)
		return call(one, worker, attempt, "3", end, strconv.FormatInt(ms+100_000, 10), "5000", "text")
	case "workundo":
		return call(one, worker)
	case "workend":
		return call(one, worker, attempt, tw.pick("D", "F"), end, "3", "5000")
	case "workextend":
		return call(one, worker, attempt, end, "5000")
	case "workread":
		return call(one)
	case "admit":
		us := strconv.FormatInt(time.Now().UnixMicro()+tw.random.Int64N(2)*tw.random.Int64N(9)*200_000, 10)
		return call([]string{tw.pick("seal", "k1")}, us, "500000", tw.number(2), tw.pick("ab", "cd"), tw.pick("v/db=0/this", "v/db=0/this", "v/db=0/other"), tw.pick("", "", tw.identity()), tw.number(2), tw.pick("0", "8000000000000000"))
	}
	tw.t.Fatalf("no arguments are known for %s.lua: add them here, or name it among the uncompared", file)
	return nil
}

// identity is what the seal holds, to be retired.
func (tw *twins) identity() string {
	if v := tw.server.look("seal"); v != nil && len(v.scores) > 0 {
		return v.scores[0].member
	}
	return "none"
}
