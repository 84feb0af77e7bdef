-- Give held locks another end, all of them or none: a later one at once, an earlier one only by
-- trim.lua, once a quorum has agreed.
-- KEYS the locks. ARGV 1 token 2 E, ms of the master's clock 3 '1': copies without an expiry are
-- locks, too 4 the expiry that copies must have, '' = any 5 only copies that last as long as this
-- count, 0 = any.
-- Returns {1, then for each copy that keeps a later expiry: its index, that expiry, moved as in
-- extend.lua, and the earlier one}, 0 the token does not hold all, -1 one is no lock of one
-- holder; nothing was changed then.
-- include shape.lua
local E, ends = tonumber(ARGV[2]), {}
E = E + (4 - E) % 8
for i, lock in ipairs(KEYS) do
  local holder = redis.pcall('GET', lock)
  if type(holder) == 'table' then return string.find(holder.err, 'WRONGTYPE', 1, true) and -1 or holder end
  if holder ~= ARGV[1] then return 0 end
  ends[i] = endOf(lock)
  if (ARGV[4] or '') ~= '' and ends[i] ~= tonumber(ARGV[4]) then return 0 end
  if ends[i] < 0 and ARGV[3] ~= '1' then return -1 end -- foreign data
  if ends[i] >= 0 and ends[i] < tonumber(ARGV[5] or '0') then return 0 end
end
local answer = {1}
for i, lock in ipairs(KEYS) do
  local new = ends[i]
  if new >= 0 then
    if E > new then new = E elseif E == new then new = E + 1 else new = prolonged(new, new + 1) end
    redis.call('PEXPIREAT', lock, digits(new))
  end
  if new ~= E and new ~= E + 1 then
    for _, n in ipairs({i, new, E}) do answer[#answer + 1] = n end
  end
end
return answer
