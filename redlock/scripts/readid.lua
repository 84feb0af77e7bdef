-- Read a counter on this master. KEYS 1 counter. ARGV 1 this master's incarnation id 2
-- '1' if a missing counter never existed. Returns {1 | -1 not a counter, value, 1 trusted
-- | 0}.
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return {-1, '0', 0} end
if not stored then return {1, '0', tonumber(ARGV[2])} end
local value, tag = string.match(stored, '^(%d+)@([%w-]+)$')
if not value then return {-1, '0', 0} end
return {1, value, tag == ARGV[1] and 1 or 0}
