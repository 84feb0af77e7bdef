-- Undo an attempt that no worker runs: the record before it is restored, so the attempt
-- is not used up. A record that was not reliable before (worktry.lua) stays so, whatever
-- its owner proves. KEYS 1 the work. ARGV 1 token. Returns 1 undone | 0.
local h = redis.pcall('HMGET', KEYS[1], 's', 'o', 'p', 'u')
if h.err or h[1] ~= 'R' or h[2] ~= ARGV[1] then return 0 end
if h[3] == '' then
  redis.call('DEL', KEYS[1])
  return 1
end
local attempt, ends, owner = string.match(h[3], '^(%d+) (%d+) (.*)$')
redis.call('HSET', KEYS[1], 'a', attempt, 'e', ends, 'o', owner)
if h[4] == '1' then redis.call('HSET', KEYS[1], 'l', '') end
return 1
