package dropin

import (
	"strings"
	"testing"
)

// A refusal that leads nowhere names the command that does the job.
func TestRecogniser_RefusalsNameTheCommandThatDoesTheJob(t *testing.T) {
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[1]) if redis.call('zcard', KEYS[1]) < tonumber(ARGV[2]) then redis.call('zadd', KEYS[1], ARGV[3], ARGV[4]) return 1 end return 0": "LIMIT n",
		"if redis.call('exists', 'w_' .. KEYS[1]) == 1 then return 0 end return redis.call('incr', 'r_' .. KEYS[1])":                                                                            "SHARED",
		"local id = redis.call('GET', KEYS[1]) if id == ARGV[1] then return redis.call('INCR', KEYS[1]) end return id":                                                                          "DNEXTID",
		"return redis.call('RPOPLPUSH', KEYS[1], KEYS[2])":                                                              "DWORK",
		"if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return redis.call('hdel', KEYS[1], ARGV[1]) end return 0": "REENTRANT",
	} {
		_, err := r.Recognise("", text, ScriptCall{Keys: []string{"k", "l"}, Args: []string{"1", "2", "3", "4"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if got := Instead("return redis.call('get', KEYS[1])"); got != "" {
		t.Errorf("a script of a lock is said to be something else: %s", got)
	}
}
