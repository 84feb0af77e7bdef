-- Make a held lock last until at least E; never shorten it.
-- KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock.
-- Returns 1 this token holds it now, {1} as a reader, {1, slot, n} with one of n permits,
-- 0 it does not. The new expiry is a value = 4 or 5 (mod 8), which no undo matches. That
-- of an exclusive lock is always moved: a command that ends it earlier names the expiry,
-- trim.lua.
local lock, token, E = KEYS[1], ARGV[1], tonumber(ARGV[2])
local holder = redis.pcall('GET', lock)
if holder == false or (type(holder) == 'string' and holder ~= token) then return 0 end
-- include shape.lua
local kind = kindOf(lock)
if kind == 'odd' then return 0 end
local ends, now = endOf(lock), clock()
if kind == 'string' then
  if ends < 0 then return 0 end -- redlockd's locks always expire: this is foreign data
  local new = prolonged(ends, E)
  if new == ends then new = new + 1 end
  redis.call('PEXPIREAT', lock, digits(new))
  return 1
end
if kind == 'zset' then
  local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
  if score < now then return 0 end
  redis.call('ZADD', lock, 'XX', digits(prolonged(score, E)), token)
  redis.call('PEXPIREAT', lock, digits(lastOf(lock)))
  return {1}
end
local all = redis.call('HGETALL', lock)
for i = 1, #all, 2 do
  local until_, other = permit(all[i + 1], now)
  if all[i] ~= 'n' and other == token then
    local new = prolonged(until_, E)
    redis.call('HSET', lock, all[i], digits(new) .. ' ' .. token)
    if new > ends then redis.call('PEXPIREAT', lock, digits(new)) end
    return {1, tonumber(all[i]), tonumber(redis.call('HGET', lock, 'n'))}
  end
end
return 0
