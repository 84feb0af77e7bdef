package sim

// operations_test.go: random operations for a real and a simulated master.

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/redlock/sim/fake"
)

// behindQueues are the lock scripts that FAIR runs behind a check of the queue.
func behindQueues() []string { return []string{"acquire", "share", "permit", "multi"} }

// queueKeys are those of the queues of k1, k2 and k3.
func queueKeys() []string { return []string{"q1", "x1", "w1", "q2", "x2", "w2", "q3", "x3", "w3"} }

// pick is one of some words.
func (tw *differential) pick(words ...string) string { return words[tw.random.IntN(len(words))] }

func (tw *differential) key() string             { return tw.pick("k1", "k2", "k3") }
func (tw *differential) number(limit int) string { return strconv.Itoa(tw.random.IntN(limit)) }

// anyKey is for plain commands: sometimes they fall upon a queue.
func (tw *differential) anyKey() string {
	if tw.random.IntN(8) == 0 {
		return tw.pick(queueKeys()...)
	}
	return tw.key()
}
func (tw *differential) token() string {
	return tw.pick("alice", "bob", "carol", "alice", "bob", "carol",
		"anne#aaaaaaaaaaaaaaaaaaaaaaaaaaa", "anne#bbbbbbbbbbbbbbbbbbbbbbbbbbb", "dave#aaaaaaaaaaaaaaaaaaaaaaaaaaa") // levels
}

// end is a moment in ms: past, or far enough ahead to be there for a while.
func (tw *differential) end() string {
	now := time.Now().UnixMilli()
	if tw.random.IntN(6) == 0 {
		return strconv.FormatInt(now-1000-tw.random.Int64N(5000), 10)
	}
	return strconv.FormatInt((now+60_000+tw.random.Int64N(2000))/8*8+tw.random.Int64N(2)*tw.random.Int64N(8), 10)
}

// endOf is where a key ends now, or nearly: what guards look at.
func (tw *differential) endOf(key string) int64 {
	tw.tick()
	at := tw.server.Execute([]string{"PEXPIRETIME", key}).Int
	return at + tw.random.Int64N(5) - 2
}

func (tw *differential) tick() { tw.server.readClock(time.Now().UnixMicro() - epoch) }

// worker is a token of a piece of work.
func (tw *differential) worker() (token, attempt string) {
	attempt = strconv.Itoa(1 + tw.random.IntN(3))
	return tw.pick("x", "y") + "." + attempt + ".3.5000." + strconv.Itoa(1+tw.random.IntN(900)), attempt
}

// commands are plain ones.
func (tw *differential) command() []string {
	key, token, end := tw.anyKey(), tw.token(), tw.end()
	switch tw.random.IntN(26) {
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
	case 10, 11:
		return []string{"ZADD", key, tw.pick("NX", "XX", "GT"), end, token}
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
		return []string{"ZMSCORE", key, "alice", "nothing", "bob"}
	case 23:
		return []string{"HGET", key, tw.pick("n", "1")}
	case 24:
		return []string{"ZCOUNT", key, tw.pick("", "(") + end, "+inf"}
	}
	return []string{"ZRANGE", key, "+inf", end, "BYSCORE", "REV", "LIMIT", "0", tw.number(4), "WITHSCORES"}
}

// call is a script with its keys and arguments.
func (tw *differential) call(file string, keys []string, args ...string) []string {
	words := append([]string{"EVALSHA", tw.scripts[file], strconv.Itoa(len(keys))}, keys...)
	return append(words, args...)
}

// script is a call of one of the product's own.
func (tw *differential) script(file string) []string {
	if words := tw.lockScript(file); words != nil {
		return words
	}
	if words := tw.queueScript(file); words != nil {
		return words
	}
	if words := tw.viewScript(file); words != nil {
		return words
	}
	if words := tw.otherScript(file); words != nil {
		return words
	}
	tw.t.Fatalf("no arguments are known for %s.lua: add them here", file)
	return nil
}

// lockScript: those that take, prolong and give back.
func (tw *differential) lockScript(file string) []string {
	key, token, end := tw.key(), tw.token(), tw.end()
	call := func(keys []string, args ...string) []string { return tw.call(file, keys, args...) }
	one := []string{key}
	switch file {
	case "acquire":
		return call(one, token, end)
	case "extend":
		if tw.random.IntN(3) == 0 {
			return call(one, token, end, "alone")
		}
		keys, args := []string{"k1", tw.pick("k1", "k2"), "k3"}[:1+tw.random.IntN(3)], []string{}
		for range keys {
			args = append(args, tw.token(), tw.end())
		}
		return call(keys, args...)
	case "share":
		if tw.random.IntN(2) == 0 {
			return call(one, token, end, "")
		}
		return call(one, token, end, strconv.FormatInt(tw.endOf(key), 10))
	case "shares":
		return tw.together(file, func() []string { return []string{tw.token(), tw.end()} })
	case "permits":
		return tw.together(file, func() []string {
			return []string{tw.token(), tw.end(), tw.pick("2", "2", "2", "2", "3"), tw.pick("1", "2", "3")}
		})
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
	case "releases":
		keys, tokens := []string{"k1", tw.pick("k1", "k2"), "k3"}[:1+tw.random.IntN(3)], []string{}
		for range keys {
			tokens = append(tokens, tw.token())
		}
		return call(keys, tokens...)
	case "permit":
		return call(one, token, end, tw.pick("2", "2", "3"), tw.pick("1", "2", "3"), tw.pick("", "1"))
	case "multi":
		return call([]string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], token, end, tw.pick("", "1"))
	case "acquires":
		keys, args := []string{}, []string{"0"}
		for range 1 + tw.random.IntN(3) {
			n := 1 + tw.random.IntN(2)
			keys, args = append(keys, []string{"k1", "k2", "k3"}[tw.random.IntN(2):][:n]...), append(args, strconv.Itoa(n), tw.token(), tw.end())
		}
		if len(args) == 4 && tw.random.IntN(2) == 0 {
			args = append(args, "alone")
		}
		return call(keys, args...)
	case "multiextend":
		return call([]string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], token, end)
	case "unupgrade":
		return call(one, token, strconv.FormatInt(tw.endOf(key), 10), tw.pick("", end))
	}
	return nil
}

// together: acquires of several locks, each with its queue.
func (tw *differential) together(file string, one func() []string) []string {
	var keys, args []string
	for _, i := range []string{"1", "2", "3"}[:1+tw.random.IntN(3)] {
		n := 1 + tw.random.IntN(3)
		keys, args = append(keys, "k"+i, "q"+i, "x"+i, "w"+i), append(args, strconv.Itoa(n))
		for range n {
			args = append(args, one()...)
		}
	}
	return tw.call(file, keys, args...)
}

// queueScript: FAIR. Waiters are tokens with places, tickets small numbers.
func (tw *differential) queueScript(file string) []string {
	n := 1 + tw.random.IntN(3)
	queues := queueKeys()[:3*n]
	if n == 1 {
		i := 3 * tw.random.IntN(3)
		queues = queueKeys()[i : i+3]
	}
	waiter, ticket := tw.pick("p/1", "p/2", "q/1", "q/2"), strconv.Itoa(100+tw.random.IntN(50))
	switch file {
	case "enlist":
		args := []string{tw.end(), tw.pick("2", "3", "9", ""), waiter, ticket, tw.number(2)}
		for range tw.random.IntN(3) {
			if args[1] != "" {
				break // only refreshes are of several waiters
			}
			args = append(args, tw.pick("p/1", "p/2", "q/1", "q/2"), strconv.Itoa(100+tw.random.IntN(50)), tw.number(2))
		}
		return tw.call(file, queues, args...)
	case "dequeue":
		return tw.call(file, queues, waiter)
	case "edges":
		if tw.random.IntN(2) == 0 {
			return tw.call(file, []string{tw.key()}, tw.number(2), "edge:", waiter+" 1 k1")
		}
		return tw.call(file, []string{tw.key(), "edge:" + tw.token(), "edge:" + tw.token()}, tw.number(2), "edge:", waiter+" 1 k1", tw.end(), tw.end())
	}
	behind, fair := strings.CutPrefix(file, "fair ")
	if !fair {
		return nil
	}
	words := tw.lockScript(behind)
	n, _ = strconv.Atoi(words[2])
	keys := slices.Clone(words[3 : 3+n])
	for _, key := range keys[:n] {
		keys = append(keys, "q"+key[1:], "x"+key[1:], "w"+key[1:])
	}
	args := append(slices.Clone(words[3+n:]), tw.pick(ticket, ticket, ""), waiter, tw.number(2), strconv.Itoa(n))
	return tw.call(file, keys, args...)
}

// viewScript: reads of locks, and changes of them by other commands.
func (tw *differential) viewScript(file string) []string {
	key, token, end := tw.key(), tw.token(), tw.end()
	switch file {
	case "inspect":
		keys, alone := []string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], ""
		if tw.random.IntN(2) == 0 {
			keys, alone = []string{key, tw.pick("notes", "k1"), tw.pick("x1", "x2", "q1", "k2")}, "1"
		}
		most := tw.pick("1", "32")
		for _, key := range keys {
			if v := tw.server.Lookup(key); v != nil && v.Kind == fake.Hash {
				most = "32" // those that end together are returned in no order
			}
		}
		return tw.call(file, keys, most, alone)
	case "note":
		return tw.call(file, []string{"notes"}, token, tw.pick("", "a text", "another"), end)
	case "view":
		return tw.call(file, []string{key})
	case "wanted": // an entry of the list is read again by the daemons alone
		return tw.call(file, []string{key, tw.pick("x1", "x2", "k2")}, tw.pick("? 1.a ", "= 1.a 2"), tw.pick("", " 1 k"))
	case "swap":
		keys, words := []string{"k1", "k2", "k3"}[:1+tw.random.IntN(3)], []string{tw.pick(end, end, ""), tw.pick("0", "1"), tw.pick("", "", "3"), tw.pick(token, tw.token(), "")}
		for range keys {
			words = append(words, tw.pick(token, tw.token()))
		}
		return tw.call(file, keys, words...)
	case "retime":
		keys := []string{"k1", "k2"}[:1+tw.random.IntN(2)]
		return tw.call(file, keys, token, end, tw.pick("", "0", "1"), tw.pick("", strconv.FormatInt(tw.endOf(keys[0]), 10)))
	case "trim":
		return tw.call(file, []string{key}, strconv.FormatInt(tw.endOf(key), 10), end, fmt.Sprintf("%x", sha1.Sum([]byte(token))))
	case "write":
		return tw.call(file, []string{key}, tw.pick("delete", "expire", "set"), tw.pick(end, end, ""), tw.pick(token, tw.token()), tw.pick("", token), tw.pick("", "1"))
	}
	return nil
}

// otherScript: ids, work and admission.
func (tw *differential) otherScript(file string) []string {
	end, one := tw.end(), []string{tw.key()}
	call := func(keys []string, args ...string) []string { return tw.call(file, keys, args...) }
	worker, attempt := tw.worker()
	switch file {
	case "nextid":
		lo := tw.pick("1", "5", "9", "10", "9007199254740993", "9223372036854775800")
		n, _ := strconv.ParseInt(lo, 10, 64)
		return call(one, lo, strconv.FormatInt(n+tw.random.Int64N(7), 10), tw.pick("aa", "bb"), tw.pick("0", "0", "7", "9007199254740992"), tw.number(2))
	case "deleteid":
		text := "7@aa"
		if v := tw.server.Lookup(one[0]); v != nil && v.Kind == fake.String {
			text = v.Text
		}
		return call(one, tw.pick("aa", "bb"), tw.pick("0", "1"), tw.pick("", end, "1"), tw.pick(text, "7@aa", ""))
	case "reseed":
		return call(one, tw.pick("3", "9007199254740993", "12"), tw.pick("aa", "bb"))
	case "worktry":
		ms, _ := strconv.ParseInt(end, 10, 64)
		return call(one, worker, attempt, "3", end, strconv.FormatInt(ms+100_000, 10), "5000", "text", tw.pick("aa", "bb"))
	case "workundo":
		return call(one, worker)
	case "workend":
		return call(one, worker, attempt, tw.pick("D", "F"), end, "3", "5000")
	case "workextend":
		return call(one, worker, attempt, end, "5000", tw.pick("aa", "bb"))
	case "workread":
		return call(one, tw.pick("aa", "bb"))
	case "admit":
		us := strconv.FormatInt(time.Now().UnixMicro()+tw.random.Int64N(2)*tw.random.Int64N(9)*200_000, 10)
		return call([]string{tw.pick("seal", "k1")}, us, "500000", tw.number(2), tw.pick("ab", "cd"), tw.pick("v/db=0/this", "v/db=0/this", "v/db=0/other"), tw.pick("", "", tw.identity()), tw.number(2), tw.pick("0", "8000000000000000"))
	}
	return nil
}

// identity is what the seal holds, to be invalidated.
func (tw *differential) identity() string {
	if v := tw.server.Lookup("seal"); v != nil && len(v.Scores) > 0 {
		return v.Scores[0].Member
	}
	return "none"
}
