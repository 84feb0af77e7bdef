-- Read a piece of work on this master. KEYS 1 the work. ARGV 1 the incarnation of this
-- master's memory. Returns {} nothing, {-1} not work, or {state, attempt, owner, ms until
-- the lease ends, max, keep ms, text, ms until it is forgotten, 1 if the record is
-- reliable | 0, see worktry.lua[, result]}.
local h = redis.pcall('HMGET', KEYS[1], 's', 'a', 'o', 'e', 'm', 'k', 't', 'u', 'l', 'r')
if h.err then return string.find(h.err, 'WRONGTYPE', 1, true) and {-1} or h end
if not h[1] then return redis.call('EXISTS', KEYS[1]) == 1 and {-1} or {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {h[1], tonumber(h[2]), h[3], math.max(0, tonumber(h[4]) - now), tonumber(h[5]), tonumber(h[6]),
  h[7] or '', redis.call('PTTL', KEYS[1]), h[8] ~= '1' and h[9] == ARGV[1] and 1 or 0, h[10] or nil}
