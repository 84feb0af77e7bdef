-- Read a key. KEYS 1 lock. Returns {} nothing, {'string', value, left, end}, {kind, '', left, end};
-- left in ms, -1 without an expiry; end in ms of the master's clock, below 0 without one.
-- include clock.lua
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return {} end
return {kind, kind == 'string' and redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]), endOf(KEYS[1])}
