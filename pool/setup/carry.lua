-- Carry: write what counters and works have elsewhere to a master that is to know it.
-- KEYS 1 the seal: a zset whose one member is the identity, its score the register
--      2 … the keys of counters and of records of work
-- ARGV 1 the identity that must stand there 2 floor for the register
--      3 what the master knows from then on of what is not there: '0' all records of work, '00'
--      also all counters, '' no more than before; 'forgot': such a counter may be a forgotten one
--      4 0: these values replace what the master has | 1: the newer of both stays
--      then for each key the number of its values, and the values:
--      0 none: it is deleted
--      1 the value of a counter
--      2 the same, and '': no quorum is sure of it
--      8 or 9 of a record: the ms left, whether its attempt may run: 0 | 1, and its s, a, o, m, k, t
--      and r (r may be missing), see worktry.lua
-- Returns OK, or CHANGED if another identity stands there.
local seal, at = KEYS[1], 5
local stored = redis.call('TYPE', seal).ok == 'zset' and redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES') or {}
local identity = ARGV[1]
if #stored ~= 2 or stored[1] ~= identity then return {ok = 'CHANGED'} end
local before, incarnation, base, behind = string.match(identity, '^(%x+:%d+ (%x+) )(%d+)( .+)$')
if not before then return {ok = 'CHANGED'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Base 0 stands for a memory from before the first counter, see admission.Incarnation.
local zeros, rest = string.match(base, '^(0*)(.*)$')
local knows = rest == '' or zeros == '00'
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function count(key, value, sure)
  local own = redis.pcall('GET', key)
  if type(own) == 'table' then return end -- something else, which is no vote either
  local has, tag = string.match(own or '', '^(%d+)@([%w-]+)$')
  if own and not has then return end
  if has and less(value, has) then value = has end
  if not has or tag == '-' then tag = knows and incarnation or 'lost' end -- see nextid.lua
  value = value .. '@' .. (sure and incarnation or tag)
  if value ~= own then redis.call('SET', key, value) end
end
local function began(token) return tonumber(string.match(token or '', '%.(%d+)$') or '0') end
local function record(key, left, runs, s, a, o, m, k, t, r)
  local own = redis.pcall('HMGET', key, 's', 'a', 'o', 'e')
  if own.err then return end
  local ends = runs == '1' and string.format('%.0f', math.max(0, now + left - k)) or '0'
  local gone = now + left
  local newer = not own[1] or s == 'D' and own[1] ~= 'D'
  local later, higher = began(o) - began(own[3]), tonumber(a) - tonumber(own[2] or '0')
  if own[1] == s and s == 'D' then newer = later > 0 or later == 0 and higher > 0 end
  if own[1] == s and s == 'R' then newer = higher > 0 end
  if newer then
    if own[1] == 'R' and s == 'R' and less(ends, own[4]) then -- it may be granted: none begins beside it
      ends, gone = own[4], math.max(gone, now + redis.call('PTTL', key))
    end
    redis.call('DEL', key)
    redis.call('HSET', key, 's', s, 'a', a, 'o', o, 'e', ends, 'm', m, 'k', k, 't', t,
      'p', s == 'R' and string.format('%d 0 ', a - 1) or '') -- an undo that comes late leaves the attempts before it used up
    if r then redis.call('HSET', key, 'r', r) end
    redis.call('PEXPIREAT', key, string.format('%.0f', gone))
  elseif own[1] == s and own[3] == o and own[4] ~= '0' and (ends == '0' or less(own[4], ends)) then
    redis.call('HSET', key, 'e', ends)
    redis.call('PEXPIREAT', key, string.format('%.0f', math.max(gone, now + redis.call('PTTL', key))))
  end
  redis.call('HSET', key, 'u', '', 'l', incarnation)
end
for i = 2, #KEYS do
  local key, n = KEYS[i], tonumber(ARGV[at])
  if ARGV[4] == '0' then redis.call('DEL', key) end
  if n > 0 and n <= 2 then
    count(key, ARGV[at + 1], n == 1)
  elseif n > 2 then
    record(key, tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8], n > 8 and ARGV[at + 9])
  end
  at = at + n + 1
end
redis.call('ZADD', seal, 'XX', 'GT', ARGV[2], identity)
if ARGV[3] == 'forgot' then
  if rest == '' then base = '1' elseif zeros == '00' then base = '0' .. rest end
elseif rest ~= '' and #zeros < #ARGV[3] then
  base = ARGV[3] .. rest
end
if before .. base .. behind ~= identity then
  redis.call('ZADD', seal, redis.call('ZSCORE', seal, identity), before .. base .. behind) -- first: a write that fails leaves the seal as it is
  redis.call('ZREM', seal, identity)
end
return {ok = 'OK'}
