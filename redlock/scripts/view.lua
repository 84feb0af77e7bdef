-- Read a key. KEYS 1 lock. Returns {} nothing, {'string', value, left}, {kind, '', left};
-- left in ms, -1 without an expiry.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return {} end
return {kind, kind == 'string' and redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1])}
