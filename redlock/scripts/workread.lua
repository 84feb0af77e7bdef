-- What this master knows of a piece of work.
-- KEYS 1 the work. Returns {} nothing, {-1} not work, or
-- {state, attempt, owner, ms until the lease ends, max, keep ms, text, ms until it is forgotten}.
local h = redis.pcall('HMGET', KEYS[1], 's', 'a', 'o', 'e', 'm', 'k', 't')
if h.err then return {-1} end
if not h[1] then return redis.call('EXISTS', KEYS[1]) == 1 and {-1} or {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {h[1], tonumber(h[2]), h[3], math.max(0, tonumber(h[4]) - now), tonumber(h[5]), tonumber(h[6]),
  h[7] or '', redis.call('PTTL', KEYS[1])}
