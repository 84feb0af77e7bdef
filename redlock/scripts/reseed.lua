-- Install an operator's value for a counter; never below a known value. KEYS 1 counter.
-- ARGV 1 value 2 this master's incarnation id. Returns {1 installed | 0 refused | -1 not
-- a counter, value now, 1 trusted | 0}.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return string.find(stored.err, 'WRONGTYPE', 1, true) and {-1, '0', 0} or stored end
if stored then
  local value, tag = string.match(stored, '^(%d+)@([%w-]+)$')
  if not value then return {-1, '0', 0} end
  if less(ARGV[1], value) then return {0, value, tag == ARGV[2] and 1 or 0} end
end
redis.call('SET', KEYS[1], ARGV[1] .. '@' .. ARGV[2])
return {1, ARGV[1], 1}
