-- Acquire one of n permits: the slot that the daemon names, because a quorum of masters
-- must give the same one. KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock 3 n 4
-- slot 5 '1' = the token may have another slot already. Returns {1, 1} the slot was free,
-- {1, 2} it was this token's and lasts at least until E (moved to a value = 4 mod 8,
-- which no undo matches), {0, free slots, at most 32, counted on from the requested one}
-- another token's or too late, {2, slot} the token has this one, {3, n} there are n
-- permits, {-1} not a lock.
local lock, token, E, n, slot = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
-- include shape.lua
local now = clock()
if E <= now then return {0} end
local kind, last, stored = kindOf(lock)
if kind == 'odd' then return {-1} end
if kind ~= 'none' and kind ~= 'hash' then return {0} end
local ends, holder
if kind == 'hash' then
  if stored ~= n then return {3, stored} end
  ends, holder = permit(redis.call('HGET', lock, slot), now)
end
if holder ~= token and (holder or (ARGV[5] == '1' and kind == 'hash')) then
  local all, taken = redis.call('HGETALL', lock), {}
  for i = 1, #all, 2 do
    local _, other = permit(all[i + 1], now)
    if all[i] ~= 'n' and other then taken[all[i]] = true end
    if all[i] ~= 'n' and other == token and ARGV[5] == '1' then return {2, tonumber(all[i])} end
  end
  if holder then
    local said = {0}
    for i = 0, n - 2 do
      local free = (tonumber(slot) + i) % n + 1
      if not taken[digits(free)] and #said <= 32 then said[#said + 1] = free end
    end
    return said
  end
end
local new = E
if holder == token then new = prolonged(ends, E) end
redis.call('HSET', lock, 'n', ARGV[3], slot, digits(new) .. ' ' .. token)
if not last or new > last then redis.call('PEXPIREAT', lock, digits(new)) end
return {1, holder == token and 2 or 1}
