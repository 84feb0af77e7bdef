-- Acquire as readers for all requests of a flush whose tokens are new: what share.lua does
-- behind the check of the queue (fair.lua). KEYS and ARGV as in together.lua, of each
-- acquire token and E. Answers as share.lua.
-- include reader.lua
-- include together.lua
local now = clock()
local function together(lock, from, to, answers)
  local kind, last, reader = kindOf(lock)
  if kind ~= 'none' and (kind ~= 'zset' or ownerOf(reader) ~= '') then return false end
  local words, ends = {}, last or 0
  for i = from, to, 2 do
    local E = tonumber(ARGV[i + 1])
    if E <= now then return false end
    ends = math.max(ends, E)
    words[#words + 1] = ARGV[i + 1]
    words[#words + 1] = ARGV[i]
  end
  if last then purge(lock, now) end
  local known = redis.call('ZADD', lock, 'NX', unpack(words)) * 2 < #words
  for i = from, to, 2 do
    answers[#answers + 1] = 1
    local had, E = known and tonumber(redis.call('ZSCORE', lock, ARGV[i])), tonumber(ARGV[i + 1])
    if had and had ~= E then
      local new = prolonged(had, E)
      answers[#answers], ends = 2, math.max(ends, new)
      redis.call('ZADD', lock, digits(new), ARGV[i])
    end
  end
  if ends > (last or 0) then endAt(lock, ends) end
  return true
end
return acquires(2, '0', together, function(lock, i)
  return share(lock, ARGV[i], tonumber(ARGV[i + 1]))
end)
