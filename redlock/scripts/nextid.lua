-- One round of a counter on one master. KEYS 1 counter: "digits@incarnation", the id of
-- the incarnation that vouches for it; "-" if it was written where it was missing. ARGV 1 lo
-- 2 hi: the proposed range 3 this master's incarnation id 4 an id that a trusted quorum chose
-- after this master was admitted, or '0' 5 '1' if a missing counter never existed. Digits are compared as strings, so they
-- are exact beyond 2^53. Returns {1 accepted | 0 refused | -1 not a counter, value now, 1
-- trusted | 0}.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local counter, incarnation = KEYS[1], ARGV[3]
local stored = redis.pcall('GET', counter)
local value, tag = '0', '-'
if type(stored) == 'table' then return string.find(stored.err, 'WRONGTYPE', 1, true) and {-1, '0', 0} or stored end
if stored then
  value, tag = string.match(stored, '^(%d+)@([%w-]+)$')
  if not value then return {-1, '0', 0} end
end
if tag == '-' and ARGV[5] == '1' then tag = incarnation end
if tag ~= incarnation and ARGV[4] ~= '0' then
  if less(value, ARGV[4]) then value = ARGV[4] end
  tag = incarnation
end
local accepted = less(value, ARGV[1])
if accepted then value = ARGV[2] end
local now = value .. '@' .. tag
if (accepted or stored) and now ~= stored then redis.call('SET', counter, now) end
return {accepted and 1 or 0, value, tag == incarnation and 1 or 0}
