-- Reconfigure: begin an incarnation under other settings, unless another run did so first.
-- KEYS 1 the seal: a zset whose one member is the identity
--        "run_id:evicted incarnation base durable fingerprint", its score the register.
--      2 a hash: of each group, when an identity got its configuration, and its text
-- ARGV 1 the identity that must stand there, '' for none    2 fingerprint
--      3 a random incarnation id   4 whether an unbroken memory keeps its own: 0 | 1
--      5 durable now: 0 | 1 6 by how much base lies ahead, us 7 floor for the register
--      8 the text of the configuration    9 group
-- Returns {'OK', identity} or {'CHANGED', the identity or the type found}.
local seal = KEYS[1]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local evicted = string.match(redis.call('INFO', 'stats'), 'evicted_keys:(%d+)')
local process = run .. ':' .. evicted
local kind = redis.call('TYPE', seal).ok
if kind ~= 'none' and kind ~= 'zset' then return {'CHANGED', kind} end
local stored = redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES')
local old, score = stored[1] or '', stored[2] or '0'
if old ~= ARGV[1] or #stored > 2 then return {'CHANGED', old} end

local lineage, durable, knows = ARGV[3], ARGV[5], ''
local was, its, base, kept = string.match(old, '^(%x+:%d+) (%x+) (%d+) ([01]) ')
local restarted = was and string.match(was, '%x+') ~= run and evicted == '0' -- see admit.lua
if ARGV[4] == '1' and was and (was == process or restarted and kept == '1' and durable == '1') then
  lineage, knows = its, base == '0' and '00' or string.match(base, '^0*') -- of ids and work, see admission.Incarnation
  if kept ~= '1' then durable = '0' end
end
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local register = us + 500000
for _, other in ipairs({score, ARGV[7]}) do
  if tonumber(other) > register then register = tonumber(other) end
end
local identity = string.format('%s %s %s%.0f %s %s', process, lineage, knows, us + tonumber(ARGV[6]), durable, ARGV[2])
-- As admit.lua does: ZADD is tried without effect while the old member still stands.
redis.call('ZREM', seal, '')
redis.call('ZADD', seal, 'XX', '0', '')
redis.call('DEL', seal)
redis.call('ZADD', seal, string.format('%.0f', register), identity)
redis.call('HSET', KEYS[2], ARGV[9], string.format('%.0f', us) .. '\n' .. ARGV[8])
return {'OK', identity}
