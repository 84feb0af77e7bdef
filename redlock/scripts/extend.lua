-- Make a held lock last until at least E; never shorten it.
-- KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock.
-- Returns 1 this token holds it now, 0 it does not.
-- The new end is the next value ≡ 4 (mod 8), out of reach of any undo.
local lock = KEYS[1]
if redis.pcall('GET', lock) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', lock)
if left < 0 then return 0 end -- ours always expire: this is somebody's data
local ends = redis.pcall('PEXPIRETIME', lock)
if type(ends) ~= 'number' then -- before Redis 7.0
  local time, again
  repeat
    time, left, again = redis.call('TIME'), redis.call('PTTL', lock), redis.call('TIME')
  until math.floor(time[2] / 1000) == math.floor(again[2] / 1000)
  ends = time[1] * 1000 + math.floor(time[2] / 1000) + left
end
local new = math.max(ends, tonumber(ARGV[2]))
new = new + (4 - new) % 8
if new > ends then redis.call('PEXPIREAT', lock, string.format('%.0f', new)) end
return 1
