-- Put an entry on the list of requests to let go, for as long as any lease lasts that the
-- lock has now, and 2 s. KEYS 1 lock 2 list: zset, entry -> expiry, ms of the master's clock.
-- ARGV 1 entry 2 what stands in a request behind the names of the holders, which are added
-- to ARGV 1; '' = it is an answer. A name is a comma and the first 8 digits of a token's SHA-1. Returns how many
-- hold the lock (of readers only the last 128), 0 = nothing is written.
-- include shape.lua
local lock, list, now = KEYS[1], KEYS[2], clock()
local kind, holders, ends = kindOf(lock), {}, 0
if kind == 'string' then
  holders, ends = {redis.call('GET', lock)}, endOf(lock) -- without an expiry it is no HOLD's
elseif kind == 'zset' then
  holders = redis.call('ZRANGE', lock, '+inf', digits(now), 'BYSCORE', 'REV', 'LIMIT', 0, 128)
  ends = endOf(lock)
elseif kind == 'hash' then
  local all = redis.call('HGETALL', lock)
  for i = 1, #all, 2 do
    local till, token = permit(all[i + 1], now)
    if all[i] ~= 'n' and till then holders[#holders + 1] = token end
  end
  ends = endOf(lock)
end
if ends < now or #holders == 0 then return 0 end
local names = {}
for i, token in ipairs(holders) do names[i] = ',' .. string.sub(redis.sha1hex(token), 1, 8) end
local entry = ARGV[1]
if ARGV[2] ~= '' then entry = entry .. table.concat(names) .. ARGV[2] end
redis.call('ZREMRANGEBYSCORE', list, '-inf', '(' .. digits(now))
-- Bounded: where there are too many, the one that ends first goes.
if redis.call('ZCARD', list) >= 256 then redis.call('ZREM', list, redis.call('ZRANGE', list, 0, 0)[1]) end
redis.call('ZADD', list, digits(ends + 2000), entry)
redis.call('PEXPIREAT', list, digits((lastOf(list))))
return #holders
