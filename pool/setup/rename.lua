-- Rename: put the next configuration in the place of the former one, in all databases of a
-- master that carries it. Incarnation, base, durability and register stay.
-- KEYS 1 the seal: a zset whose one member is the identity, its score the register; it ends
--        with a fingerprint, also if it was invalidated
--      2 a hash: of each group, when an identity got its configuration, and its text
-- ARGV 1 the rest of the next fingerprint, behind the number of the database    2 its text
--      3 group    4 it is in force: 0 | 1; then its text is stored again
--      5 what stands before the number    6 … the rests of those that it replaces
-- Returns {'database', ...}: where the next configuration stands now.
local seal, carries, db = KEYS[1], {}, 0
while not redis.pcall('SELECT', db).err do
  local stored = redis.call('TYPE', seal).ok == 'zset' and redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES') or {}
  local memory, print = string.match(stored[1] or '', '^(%x+:%d+ %x+ %d+ [01] )(.+)$')
  if not memory then memory, print = string.match(stored[1] or '', '^(retired )(.+)$') end
  local its = print and string.sub(print, 1, #ARGV[5]) == ARGV[5] and string.match(print, '^%d+', #ARGV[5] + 1)
  if #stored == 2 and its and tonumber(its) ~= db then -- SWAPDB brought it: were it swapped back, it would lack the change
    redis.call('ZADD', seal, stored[2], 'retired')
    redis.call('ZREM', seal, stored[1])
    print = nil
  end
  local new, former = ARGV[5] .. db .. ARGV[1], false
  for i = 6, #ARGV do former = former or print == ARGV[5] .. db .. ARGV[i] end
  if #stored == 2 and (former or print == new) then
    local time = redis.call('TIME')
    local at = string.format('%.0f', time[1] * 1000000 + time[2])
    if former then
      redis.call('ZADD', seal, stored[2], memory .. new) -- first: a write that fails leaves the seal as it is
      redis.call('ZREM', seal, stored[1])
    else
      at = string.match(redis.call('HGET', KEYS[2], ARGV[3]) or '', '^(%d+)\n') or at
    end
    if former or ARGV[4] == '1' then redis.call('HSET', KEYS[2], ARGV[3], at .. '\n' .. ARGV[2]) end
    carries[#carries + 1] = tostring(db)
  end
  db = db + 1
end
return carries
