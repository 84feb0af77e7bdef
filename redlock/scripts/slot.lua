-- Gives a token one of n permits. Other scripts include this file; it is no script of its
-- own.
-- include shape.lua
-- The answer to a request whose slot another token has: {0, free slots}.
local function freeSlots(n, slot, taken)
  local answer = {0}
  for i = 0, n - 2 do
    local free = (tonumber(slot) + i) % n + 1
    if not taken[digits(free)] and #answer <= 32 then answer[#answer + 1] = free end
  end
  return answer
end
-- The arguments and the answers are those of permit.lua; n and slot are texts.
local function takeSlot(lock, token, E, n, slot, again)
  local now = clock()
  if E <= now then return {0} end
  local kind, last, stored = kindOf(lock)
  if kind == 'odd' then return -1 end
  if kind ~= 'none' and kind ~= 'hash' then return {0} end
  local ends, holder
  if kind == 'hash' then
    if stored ~= tonumber(n) then return {3, stored} end
    ends, holder = permit(redis.call('HGET', lock, slot), now)
  end
  if holder ~= token and (holder or (again and kind == 'hash')) then
    local all, taken = redis.call('HGETALL', lock), {}
    for i = 1, #all, 2 do
      local _, other = permit(all[i + 1], now)
      if all[i] ~= 'n' and other then taken[all[i]] = true end
      if all[i] ~= 'n' and other == token and again then return {2, tonumber(all[i])} end
    end
    if holder then return freeSlots(tonumber(n), slot, taken) end
  end
  local new = E
  if holder == token then new = prolonged(ends, E) end
  if last and new > last then endAt(lock, new) end -- first: where it is refused, nothing is given
  redis.call('HSET', lock, 'n', n, slot, digits(new) .. ' ' .. token)
  if not last then endAt(lock, new) end
  return holder == token and 2 or 1
end
