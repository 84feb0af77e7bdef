-- Note that a waiting client holds locks, and show which waiting clients hold a key.
-- KEYS 1 lock, then the edges to write: prefix and token of each lock that the client
-- holds. ARGV 1 '1' all who hold the lock | '0' not its readers 2 prefix of edges 3 what
-- the client waits for, then for each edge when it expires, ms of the master's clock.
-- Returns what the holders of the lock wait for, of those that wait.
for i = 2, #KEYS do redis.call('SET', KEYS[i], ARGV[3], 'PXAT', ARGV[i + 2]) end
-- include clock.lua
local kind, holders, waits = redis.call('TYPE', KEYS[1]).ok, {}, {}
if kind == 'string' then holders[1] = redis.call('GET', KEYS[1]) end
if kind == 'zset' and ARGV[1] == '1' then
  local last, now = redis.call('ZRANGE', KEYS[1], -64, -1, 'WITHSCORES'), clock()
  for i = 1, #last, 2 do
    if tonumber(last[i + 1]) >= now then holders[#holders + 1] = last[i] end
  end
end
for _, token in ipairs(holders) do
  waits[#waits + 1] = redis.call('GET', ARGV[2] .. token) or nil
end
return waits
