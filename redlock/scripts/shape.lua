-- Determines the kind of lock at a key. Other scripts include this file; it is no script
-- of its own.
--
-- A string is one holder's token. A zset is readers: token -> expiry. A hash is permits:
-- n -> how many, slot -> "expiry, token". redlockd's locks always expire, a zset exactly
-- when its last reader does. Anything else that looks alike is foreign data and is never
-- touched.
-- include clock.lua
-- The expiry and the token of the last reader, nil without one.
local function lastOf(key)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  return last[2] and tonumber(last[2]), last[1]
end
-- 'none', 'string', 'zset', 'hash', or 'odd' for data that is not redlockd's lock; then
-- the expiry of the last reader and its token, or the hash's expiry and n. Readers who are
-- there together are all levels of one owner, or none is a level: one stands for all.
local function kindOf(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' or kind == 'string' then return kind end
  local ends = endOf(key)
  if ends < 0 then return 'odd' end
  if kind == 'zset' then
    local last, reader = lastOf(key)
    if math.abs(last - ends) <= 1 then return kind, last, reader end
  elseif kind == 'hash' then
    local n = redis.call('HGET', key, 'n')
    if string.match(n or '', '^%d+$') then return kind, ends, tonumber(n) end
  end
  return 'odd'
end
-- Removes readers whose time is over. Strictly less: a key lasts through its last ms.
local function purge(key, now) redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. digits(now)) end
-- The owner of a level of a reentrant lock, whose token is owner, '#' and 27 characters; ''
-- of every other token.
local function ownerOf(token)
  return string.byte(token, -28) == 35 and string.sub(token, 1, -29) or ''
end
-- A string becomes readers by DEL, ZADD and PEXPIREAT. A write that the daemon's user may
-- not make, or that the master refuses, must fail while the string is still there. So
-- each write is tried first with arguments that change nothing. Returns the first error,
-- nil if there is none. ZADD follows another write here, as it follows DEL: a full master
-- refuses it only as the first write of a script.
local function refusesReaders(key)
  local tried = redis.pcall('PEXPIREAT', key, 'never')
  if not string.find(tried.err, 'not an integer', 1, true) then return tried end
  tried = redis.pcall('ZADD', key, 'XX', '0', 'nobody')
  if not string.find(tried.err, 'WRONGTYPE', 1, true) then return tried end
end
-- Moves the expiry of readers or permits. Where that is refused, new ones go, which would
-- never end, and readers end with the key.
local function endAt(key, ends)
  if redis.pcall('PEXPIREAT', key, digits(ends)) == 1 then return end
  local last = endOf(key)
  if last == -1 then
    redis.call('DEL', key)
  elseif redis.call('TYPE', key).ok == 'zset' then
    for _, one in ipairs(redis.call('ZRANGEBYSCORE', key, digits(last + 1), '+inf')) do redis.call('ZADD', key, digits(last), one) end
  end
  redis.call('PEXPIREAT', key, digits(ends))
end
-- Where the copy of a reader ends that becomes the writer: a value = 2 (mod 8), which only
-- the undo of that attempt matches, and which the token has at most once: whatever prolongs
-- the copy, or makes it a reader again, leaves a later end, and only the undo this score.
local function upgraded(score, E)
  local ends = math.max(score, E)
  return ends + (2 - ends) % 8
end
-- A prolonged copy ends at a value = 4 (mod 8), which no undo matches.
local function prolonged(ends, E)
  local new = math.max(ends, E)
  return new + (4 - new) % 8
end
