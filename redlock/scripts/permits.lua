-- Acquire permits for all requests of a flush whose tokens are new: what permit.lua does
-- behind the check of the queue (fair.lua). First come those whose slot is free, then the
-- others. KEYS and ARGV as in together.lua, of each acquire token, E, n and slot. Answers
-- as permit.lua.
-- include slot.lua
-- include together.lua
local now = clock()
local function together(lock, from, to, answers)
  local kind, last, n = kindOf(lock)
  if kind ~= 'none' and kind ~= 'hash' then return false end
  n = n or tonumber(ARGV[from + 2])
  local slots = {}
  for i = from, to, 4 do
    if tonumber(ARGV[i + 1]) <= now or tonumber(ARGV[i + 2]) ~= n then return false end
    slots[#slots + 1] = ARGV[i + 3]
  end
  local values = kind == 'hash' and redis.call('HMGET', lock, unpack(slots)) or {}
  local words, given, ends = {'n', ARGV[from + 2]}, {}, last or 0
  for k, slot in ipairs(slots) do
    local i = from + 4 * (k - 1)
    local _, holder = permit(values[k], now)
    if holder == ARGV[i] then return false end
    if not holder and not given[slot] then
      given[slot], ends = k, math.max(ends, tonumber(ARGV[i + 1]))
      words[#words + 1] = slot
      words[#words + 1] = ARGV[i + 1] .. ' ' .. ARGV[i]
    end
  end
  if #words > 2 then redis.call('HSET', lock, unpack(words)) end
  if ends > (last or 0) then endAt(lock, ends) end
  local taken
  for k, slot in ipairs(slots) do
    if given[slot] ~= k and not taken then
      local all = redis.call('HGETALL', lock)
      taken = {}
      for i = 1, #all, 2 do taken[all[i]] = permit(all[i + 1], now) and all[i] ~= 'n' end
    end
    answers[#answers + 1] = given[slot] == k and 1 or freeSlots(n, slot, taken)
  end
  return true
end
return acquires(4, '1', together, function(lock, i)
  return takeSlot(lock, ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3])
end)
