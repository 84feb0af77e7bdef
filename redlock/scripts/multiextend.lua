-- Make several held locks last until at least E, all of them or none; never
-- shorten one.
-- KEYS the locks. ARGV 1 token 2 E, ms of the master's clock 3 only copies that last as long as
-- this count, 0 = any.
-- Returns 1 this token holds them all, {1} all as a reader, 0 it does not: nothing was changed.
local token, E = ARGV[1], tonumber(ARGV[2])
-- include shape.lua
local now, readers, ends = clock(), 0, {}
for i, lock in ipairs(KEYS) do
  local kind = kindOf(lock)
  if kind == 'string' and redis.call('GET', lock) == token then
    ends[i] = endOf(lock)
  elseif kind == 'zset' then
    ends[i] = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if ends[i] < now then return 0 end
    readers = readers + 1
  else
    return 0
  end
  if ends[i] < tonumber(ARGV[3] or '0') then return 0 end -- also below 0: foreign data
end
if readers > 0 and readers < #KEYS then return 0 end
for i, lock in ipairs(KEYS) do
  local new = prolonged(ends[i], E)
  if readers > 0 then
    redis.call('ZADD', lock, 'XX', digits(new), token)
    endAt(lock, (lastOf(lock)))
  else
    if new == ends[i] then new = new + 1 end -- as extend.lua does
    redis.call('PEXPIREAT', lock, digits(new))
  end
end
if readers > 0 then return {1} end
return 1
