-- Acquire as readers, each with a token that only this request has: what share.lua does
-- behind the check of the queue (fair.lua), for all such acquires of a flush.
-- KEYS of each lock: it, queue, expiries, writers. ARGV of each lock: the number of its
-- readers, then token and E of each. Returns a string with one digit for each reader: 1
-- is a reader now, 2 was one, 0 another token's or too late; or, if an answer is no digit,
-- an array: also {-2} another waiter precedes it, -1 not a lock.
-- include reader.lua
-- include queue.lua
local now, at, said, plain = clock(), 1, {}, true
local queues = {}
for i = 2, #KEYS, 4 do queues[#queues + 1] = KEYS[i] end
local queued = redis.call('EXISTS', unpack(queues)) > 0
-- All readers of a lock at once, if that is as good as one by one.
local function together(lock, from, to)
  local kind, last, reader = kindOf(lock)
  if kind ~= 'none' and (kind ~= 'zset' or ownerOf(reader) ~= '') then return false end
  local words, first, ends = {}, math.huge, 0
  for i = from, to, 2 do
    local E = tonumber(ARGV[i + 1])
    first, ends = math.min(first, E), math.max(ends, E)
    words[#words + 1] = ARGV[i + 1]
    words[#words + 1] = ARGV[i]
  end
  if first <= now then return false end
  if last then purge(lock, now) end
  local known = redis.call('ZADD', lock, 'NX', unpack(words)) * 2 < #words
  for i = from, to, 2 do
    said[#said + 1] = 1
    local had, E = known and tonumber(redis.call('ZSCORE', lock, ARGV[i])), tonumber(ARGV[i + 1])
    if had and had ~= E then
      local new = prolonged(had, E)
      said[#said], ends = 2, math.max(ends, new)
      redis.call('ZADD', lock, digits(new), ARGV[i])
    end
  end
  if not last or ends > last then redis.call('PEXPIREAT', lock, digits(ends)) end
  return true
end
for k = 1, #KEYS, 4 do
  local from, to = at + 1, at + 2 * tonumber(ARGV[at])
  at = to + 1
  local behind = queued and precedes(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], '0', '', '')
  if behind or not together(KEYS[k], from, to) then
    for i = from, to, 2 do
      if behind and not holds(KEYS[k], ARGV[i]) then
        said[#said + 1], plain = {-2}, false
      else
        said[#said + 1] = share(KEYS[k], ARGV[i], tonumber(ARGV[i + 1]))
        plain = plain and string.find(tostring(said[#said]), '^%d$')
      end
    end
  end
end
return plain and table.concat(said) .. '' or said -- embedded masters leave one number a number
