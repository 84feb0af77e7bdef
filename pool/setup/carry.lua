-- Carry: write what slots take along to a master of the group that is to have them.
-- KEYS 1 the seal: a zset whose one member is the identity, its score the register
--      2 … the keys of counters and of records of work
-- ARGV 1 the identity that must stand there 2 floor for the register 3 whether a counter that is
--      not there may be a forgotten one: 0 | 1; then for each key the number of its values, and
--      the values: none, and the key is deleted; the value of a counter; or of a record the ms
--      left, and its s, a, o, m, k, t and r (r may be missing), see worktry.lua
-- Returns OK, or CHANGED if another identity stands there.
local seal, at = KEYS[1], 4
local stored = redis.call('TYPE', seal).ok == 'zset' and redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES') or {}
local identity = ARGV[1]
if #stored ~= 2 or stored[1] ~= identity then return {ok = 'CHANGED'} end
local before, incarnation, base, behind = string.match(identity, '^(%x+:%d+ (%x+) )(%d+)( .+)$')
if not before then return {ok = 'CHANGED'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #KEYS do
  local n = tonumber(ARGV[at])
  redis.call('DEL', KEYS[i])
  if n == 1 then
    redis.call('SET', KEYS[i], ARGV[at + 1] .. '@' .. incarnation)
  elseif n > 1 then
    redis.call('HSET', KEYS[i], 's', ARGV[at + 2], 'a', ARGV[at + 3], 'o', ARGV[at + 4], 'e', '0', 'm', ARGV[at + 5],
      'k', ARGV[at + 6], 'p', '', 't', ARGV[at + 7], 'u', '', 'l', incarnation)
    if n > 7 then redis.call('HSET', KEYS[i], 'r', ARGV[at + 8]) end
    redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', now + tonumber(ARGV[at + 1])))
  end
  at = at + n + 1
end
redis.call('ZADD', seal, 'XX', 'GT', ARGV[2], identity)
-- Base 0 stands for a memory from before the first counter. Another base, however old, does not.
if ARGV[3] == '1' and base == '0' then
  redis.call('ZADD', seal, redis.call('ZSCORE', seal, identity), before .. '1' .. behind) -- first: a write that fails leaves the seal as it is
  redis.call('ZREM', seal, identity)
end
return {ok = 'OK'}
