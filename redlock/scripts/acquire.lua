-- Acquire with a token of the caller's: a repeat of it is the same lock.
-- KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock.
-- Returns 1 was free and is this token's now, 2 was this token's and lasts at
-- least until E (moved to a value ≡ 4 mod 8, out of reach of any undo),
-- 0 another's or too late, -1 not a lock.
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
if type(holder) == 'table' then return -1 end
if holder ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', lock)
if left < 0 then return 0 end -- ours always expire: this is somebody's data
local ends = redis.pcall('PEXPIRETIME', lock)
if type(ends) ~= 'number' then -- before Redis 7.0
  local again
  repeat
    time, left, again = redis.call('TIME'), redis.call('PTTL', lock), redis.call('TIME')
  until math.floor(time[2] / 1000) == math.floor(again[2] / 1000)
  ends = time[1] * 1000 + math.floor(time[2] / 1000) + left
end
local new = math.max(ends, E)
new = new + (4 - new) % 8
if new > ends then redis.call('PEXPIREAT', lock, string.format('%.0f', new)) end
return 2
