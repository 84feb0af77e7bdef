-- Quarantine: end the incarnation of this master in every database. The next
-- admission begins a new one, which votes when it is old enough.
-- KEYS 1 the seal: a zset whose one member is the identity, its score the register.
--      2 a hash, see admit.lua
-- ARGV 1 0 | 1 if the files were replaced: what they have of changes may be old, too
-- The seal keeps the fingerprint: its master still belongs to the group.
-- Returns {'database identity', ...}, one for each incarnation that it ended.
local seal, ended, db = KEYS[1], {}, 0
while not redis.pcall('SELECT', db).err do
  if redis.call('TYPE', seal).ok == 'zset' then
    local stored = redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES')
    if #stored == 2 and string.find(stored[1], '^%S+ %x+ %d+ [01] ') then
      redis.call('ZADD', seal, stored[2], 'retired ' .. string.match(stored[1], '^%S+ %x+ %d+ [01] (.*)$')) -- first: a write that fails leaves the seal as it is
      redis.call('ZREM', seal, stored[1])
      local group = string.match(stored[1], '/group=(.-)/db=')
      if group and ARGV[1] == '1' then redis.call('HDEL', KEYS[2], group .. '\nprocesses') end
      ended[#ended + 1] = db .. ' ' .. stored[1]
    end
  end
  db = db + 1
end
return ended
