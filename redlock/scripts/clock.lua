-- Reads the master's clock and the expiry of a key and of a permit. Other scripts include
-- this file; it is no script of its own.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function digits(ms) return string.format('%.0f', ms) end
-- The expiry of a key, ms of the master's clock; below 0 = never, or there is no key.
local function endOf(key)
  local ends = redis.pcall('PEXPIRETIME', key)
  if type(ends) == 'number' then return ends end
  local before, left, after -- before Redis 7.0
  repeat
    before, left, after = clock(), redis.call('PTTL', key), clock()
  until before == after
  if left < 0 then return left end
  return before + left
end
-- The expiry and the token of the slot's permit; nil if it is free.
local function permit(value, now)
  if not value then return nil end
  local ends, holder = string.match(value, '^(%d+) (.*)$')
  if not ends or tonumber(ends) < now then return nil end
  return tonumber(ends), holder
end
