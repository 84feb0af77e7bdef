-- What kind of lock stands at a key? Included where a script says so; it is no
-- script of its own.
--
-- A string is one holder's token. A zset is readers: token -> when it ends. A
-- hash is permits: n -> how many, slot -> "when it ends, token". Ours always
-- expire, a zset exactly when its last reader does; whatever else looks alike
-- is somebody's data and is never touched.
-- include clock.lua
-- When the last reader ends, nil without one.
local function lastOf(key)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  return last[2] and tonumber(last[2])
end
-- 'none', 'string', 'zset', 'hash', or 'odd' for what is no lock of ours.
local function kindOf(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' or kind == 'string' then return kind end
  local ends = endOf(key)
  if ends < 0 then return 'odd' end
  if kind == 'zset' and math.abs(lastOf(key) - ends) <= 1 then return kind end
  if kind == 'hash' and string.match(redis.call('HGET', key, 'n') or '', '^%d+$') then return kind end
  return 'odd'
end
-- Readers whose time is over go. Strictly less: a key lives through its last ms.
local function purge(key, now) redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. digits(now)) end
-- A string becomes readers by DEL, ZADD and PEXPIREAT. A write that the daemon's user may
-- not make, or that the master refuses, must fail while the string still stands: so each
-- is tried first with arguments that change nothing. Returns the error that it meets, nil
-- if it meets none. ZADD stands behind another write, as it does behind DEL: a full
-- master refuses it only as the first write of a script.
local function refusesReaders(key)
  local tried = redis.pcall('PEXPIREAT', key, 'never')
  if not string.find(tried.err, 'not an integer', 1, true) then return tried end
  tried = redis.pcall('ZADD', key, 'XX', '0', 'nobody')
  if not string.find(tried.err, 'WRONGTYPE', 1, true) then return tried end
end
-- When the slot's permit ends and whose it is; nil if it is free.
local function permit(value, now)
  if not value then return nil end
  local ends, holder = string.match(value, '^(%d+) (.*)$')
  if not ends or tonumber(ends) < now then return nil end
  return tonumber(ends), holder
end
-- What prolongs a copy ends at a value = 4 (mod 8), out of reach of any undo.
local function prolonged(ends, E)
  local new = math.max(ends, E)
  return new + (4 - new) % 8
end
