// What redlockd has instead of the scripts that people write from the texts about Redis.

package dropin

import (
	"regexp"
	"strings"
)

var (
	modePrefix = regexp.MustCompile(`['"](r_|w_|read:|write:|:read|:write)`)
	instead    = []struct {
		in  func(script string) bool
		has string
	}{
		{calls("zadd", "zrank", "zremrangebyscore", "zcard"), "DLOCK key ttl LIMIT n is a semaphore, with FAIR in the order of the requests"},
		{modePrefix.MatchString, "DLOCK key ttl SHARED is a read lock, and DLOCK key ttl the write lock"},
		{calls("incr", "incrby"), "DNEXTID name gives ids that only grow, and DLOCK replies with a fence"},
		{calls("rpoplpush", "lmove", "lpop", "rpop", "hincrby"), "DWORK key ttl gives work to one worker at a time, and counts the attempts"},
		{calls("hset", "hexists", "hdel"), "DLOCK key ttl REENTRANT counts the levels of an owner"},
	}
)

// calls reports whether a script calls one of these commands of Redis.
func calls(names ...string) func(script string) bool {
	return func(script string) bool {
		for _, name := range names {
			if strings.Contains(script, "'"+name+"'") || strings.Contains(script, `"`+name+`"`) {
				return true
			}
		}
		return false
	}
}

// Instead names redlockd's command that does the job of a script that is refused; "" is none.
func Instead(script string) string {
	script = strings.ToLower(script)
	for _, one := range instead {
		if one.in(script) {
			return "; " + one.has
		}
	}
	return ""
}
