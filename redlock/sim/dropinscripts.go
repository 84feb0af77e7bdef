package sim

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// libraryScript is a script as a lock library sends it, and the meaning of its answers.
// The libraries differ in everything: what is yes to one is no to another.
type libraryScript struct {
	text     string
	vote     func(pool.Reply) redlock.ScriptVote
	unit     redlock.ScriptUnit
	timed    bool // ARGV[2] is a time
	prolongs bool // it takes a lock, or prolongs its own
}

// KEYS[1] is the lock, ARGV[1] the value, ARGV[2] the lease.
var (
	takes = []*libraryScript{
		{text: `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 'OK' end return false`, vote: okOrNil, timed: true},
		{text: `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) and 1 or 0`, vote: numbers(1, 0), timed: true, unit: redlock.ScriptUnixMilliseconds},
	}
	retake = &libraryScript{text: `local v = redis.call('GET', KEYS[1])
if v and v ~= ARGV[1] then return -1 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`, vote: numbers(1, -1), timed: true, prolongs: true}
	renewals = []*libraryScript{
		{text: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])`, vote: numbers(1, 0), timed: true},
		{text: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end redis.call('PEXPIREAT', KEYS[1], ARGV[2]) return 'OK'`, vote: okOrNil, timed: true, unit: redlock.ScriptUnixMilliseconds},
	}
	addition = &libraryScript{text: `local left = redis.call('PTTL', KEYS[1])
if redis.call('GET', KEYS[1]) ~= ARGV[1] or left < 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], left + ARGV[2])`, vote: numbers(1, 0)}
	drops = []*libraryScript{
		{text: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`, vote: numbers(1, 0)},
		{text: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('DEL', KEYS[1]) return 0`, vote: numbers(0, 1)},
	}
)

func okOrNil(r pool.Reply) redlock.ScriptVote {
	switch {
	case r.Err != nil:
	case r.Str == "OK":
		return redlock.ScriptYes
	case r.Kind == pool.ReplyNil:
		return redlock.ScriptNo
	}
	return redlock.ScriptUnclear
}

// numbers reads one number as yes and another one as no.
func numbers(yes, no int64) func(pool.Reply) redlock.ScriptVote {
	return func(r pool.Reply) redlock.ScriptVote {
		switch {
		case r.Err != nil || r.Kind != pool.ReplyInt:
		case r.Int == yes:
			return redlock.ScriptYes
		case r.Int == no:
			return redlock.ScriptNo
		}
		return redlock.ScriptUnclear
	}
}

// call makes one call of the script.
func (p *libraryScript) call(key string, value redlock.Token, ttl time.Duration) *redlock.Script {
	s := &redlock.Script{Text: p.text, Keys: []redlock.Key{redlock.Key(key)}, Args: []string{string(value)}, Prolongs: p.prolongs, Vote: p.vote, Answers: &redlock.ScriptAnswers{}}
	if ttl > 0 {
		s.Args = append(s.Args, strconv.FormatInt(ttl.Milliseconds(), 10))
	}
	if p.timed {
		s.Time = redlock.ScriptTime{Arg: 2, Unit: p.unit}
	}
	return s
}

func (w *World) anyOf(some []*libraryScript) *libraryScript { return some[w.random.IntN(len(some))] }
