package redlocktest

import (
	"fmt"
	"testing"

	"redlockd/pool/faulty"
	"redlockd/redlock/scripts"
)

// On sends a command to a server directly.
func On(t *testing.T, s *faulty.Server, args ...any) any {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// ScriptOn runs one of redlockd's scripts on a server, and returns its answer as it is printed.
func ScriptOn(t *testing.T, s *faulty.Server, file, key string, args ...any) string {
	t.Helper()
	text, err := scripts.Text(file)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.Do(append([]any{"EVAL", string(text), 1, key}, args...)...)
	if err != nil {
		t.Fatalf("%s%q: %v", file, args, err)
	}
	return fmt.Sprint(reply)
}

// EndScript reports when a key ends on any master, as PEXPIRETIME does from Redis 7.0 on.
const EndScript = `
local ends = redis.pcall('PEXPIRETIME', KEYS[1])
if type(ends) == 'number' then return ends end
local function ms() local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) end
while true do
  local before, left = ms(), redis.call('PTTL', KEYS[1])
  if left < 0 then return left end
  if ms() == before then return before + left end
end`

// EndOn returns when a key ends on a server, ms of its clock.
func EndOn(t *testing.T, s *faulty.Server, key string) int64 {
	t.Helper()
	return On(t, s, "EVAL", EndScript, 1, key).(int64)
}
