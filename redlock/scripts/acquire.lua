-- Acquire with a token that the caller chose: a repeat is the same lock, and the only
-- reader becomes the writer in place.
-- KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock.
-- Returns 1 the lock was free and is this token's now, 2 it was this token's and lasts at
-- least until E (moved to a value = 4 or 5 mod 8, which no undo matches, and always
-- moved, so that an earlier downgrade command does not find it, share.lua), {1, score} it
-- was this token's reader until score, -1 not a lock, 0 another token's or too late, {0,
-- readers, 1 this token is among them | 0}.
local lock = KEYS[1]
local E = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if E <= now then return 0 end
local holder = redis.pcall('GET', lock)
if holder == false then
  redis.call('SET', lock, ARGV[1], 'PXAT', ARGV[2])
  return 1
end
if type(holder) == 'string' and holder ~= ARGV[1] then return 0 end
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end -- not read: it may be another token's
-- include shape.lua
local kind = kindOf(lock)
if kind == 'odd' then return -1 end
if kind == 'hash' then return 0 end
if kind == 'string' then
  local ends = endOf(lock)
  if ends < 0 then return 0 end -- redlockd's locks always expire: this is foreign data
  local new = prolonged(ends, E)
  if new == ends then new = new + 1 end
  redis.call('PEXPIREAT', lock, digits(new))
  return 2
end
purge(lock, now)
local readers, score = redis.call('ZCARD', lock), redis.call('ZSCORE', lock, ARGV[1])
if readers > 1 or (readers == 1 and not score) then return {0, readers, score and 1 or 0} end
if score then
  score = tonumber(score)
  redis.call('SET', lock, ARGV[1], 'PXAT', digits(upgraded(score, E)))
  return {1, score}
end
redis.call('SET', lock, ARGV[1], 'PXAT', ARGV[2])
return 1
