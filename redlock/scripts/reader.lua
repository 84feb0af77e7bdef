-- Makes a token a reader. Other scripts include this file; it is no script of its own.
-- include shape.lua
-- The arguments and the answers are those of share.lua.
local function share(lock, token, E, writer)
  local now = clock()
  if E <= now then return 0 end
  local kind, last, reader = kindOf(lock)
  if kind == 'odd' then return -1 end
  if kind == 'hash' then return 0 end
  local answer, ends = 1, E
  if kind == 'string' then
    if redis.call('GET', lock) ~= token then return 0 end
    local had = endOf(lock)
    if had < 0 then return 0 end -- redlockd's locks always expire: this is foreign data
    if had ~= writer then return {0, had} end
    answer, ends = 3, prolonged(had, E)
    local refusal = refusesReaders(lock)
    if refusal then return refusal end
    redis.call('DEL', lock)
  elseif kind == 'zset' then
    purge(lock, now)
    local owner = ownerOf(token)
    if owner ~= ownerOf(reader) then return 0 end
    -- What shows and prolongs all levels of an owner reads that many holders (readlock.go).
    if owner ~= '' and redis.call('ZCARD', lock) >= 1000 then return 0 end
    if owner ~= '' then ends = math.max(E, last) end -- an outer level never outlasts an inner one
  end
  if redis.call('ZADD', lock, 'NX', digits(ends), token) == 0 then
    answer, ends = 2, prolonged(tonumber(redis.call('ZSCORE', lock, token)), E)
    redis.call('ZADD', lock, digits(ends), token)
  end
  if not last or ends > last then endAt(lock, ends) end
  return answer
end
