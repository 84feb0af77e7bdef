-- Admission: decide, in one atomic step, which incarnation (one unbroken memory)
-- this master is in.
-- KEYS 1 the seal: a zset whose one member is the identity
--        "run_id:evicted incarnation base durable fingerprint", its score the register.
--        evicted is evicted_keys when the identity was written. One that was invalidated
--        is "retired fingerprint".
--      2 a hash: of each group, when an identity got its configuration, and its text; and the
--        processes of its incarnation, see below
-- ARGV 1 the group's clock, us   2 largest clock error, us   3 durable now: 0 | 1
--      4 a random incarnation id 5 fingerprint               6 identity to invalidate, or ''
--      7 bootstrap: 0 | 1 if no earlier incarnation matters  8 floor for a new register
--      9 0 | 1 | 2 if this daemon may begin an incarnation where its configuration does not
--        stand, or may be older than the last change: on a blank master, on one that has come
--        back with a file, and where its group had a former epoch. The clock in
--        ARGV 1 bounds how late that happens. 2: and where another change made its epoch
--      10 the least base of a new incarnation: a change of the limits lays it ahead
--      11 the text of the configuration, '' if unknown   12 group    13 the group's first key prefix
--      14 this daemon's: one of those that the group has now
--      15 0 | 1 if the identity to invalidate is that of an older memory
-- Returns {'OK', identity, clock us, register, 'run_id=register;…'} or {reason, detail}. The
-- last one has the register of each process of this incarnation at its first admission, the
-- newest process first; what stands behind the last semicolon may be cut off. Writes
-- nothing with a wrong clock, except that an identity to invalidate is replaced.
local seal = KEYS[1]
-- The seal gets another member by DEL and ZADD. If ZADD is refused, it must be while the
-- old one still stands, or the register is lost: so it is tried first without effect.
-- ZREM has none either: a full master refuses ZADD only as the first write of a script.
local function replace(score, member)
  redis.call('ZREM', seal, '')
  redis.call('ZADD', seal, 'XX', '0', '')
  redis.call('DEL', seal)
  redis.call('ZADD', seal, score, member)
end
local replication = redis.call('INFO', 'replication')
local role = string.match(replication, 'role:(%a+)')
if role ~= 'master' then return {'REPLICA', tostring(role)} end
local offset = string.match(replication, 'second_repl_offset:(%-?%d+)')
if offset ~= '-1' then return {'PROMOTED', tostring(offset)} end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local evicted = string.match(redis.call('INFO', 'stats'), 'evicted_keys:(%d+)')
local process = run .. ':' .. evicted

local kind = redis.call('TYPE', seal).ok
if kind ~= 'none' and kind ~= 'zset' then return {'FOREIGN', kind} end
local stored = redis.call('ZRANGE', seal, 0, -1, 'WITHSCORES')
if #stored > 2 then return {'FOREIGN', 'zset of several members'} end
local old, score = stored[1], stored[2] or '0'

local processes = redis.call('HGET', KEYS[2], ARGV[12] .. '\nprocesses') or ''
local function retire(carried)
  replace(score, 'retired ' .. carried)
  if ARGV[15] == '1' then redis.call('HDEL', KEYS[2], ARGV[12] .. '\nprocesses') end
end

local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local off = us - tonumber(ARGV[1])
if off > tonumber(ARGV[2]) or off < -tonumber(ARGV[2]) then
  if old and old == ARGV[6] then
    retire(string.match(old, '^%x+:%d+ %x+ %d+ [01] (.+)$') or '')
  end
  return {'CLOCK', string.format('%.0f', off)}
end

local was, lineage, base, durable, print
if old then was, lineage, base, durable, print = string.match(old, '^(%x+:%d+) (%x+) (%d+) ([01]) (.+)$') end
local texts = redis.call('HGET', KEYS[2], ARGV[12])
local carried = print or old and string.match(old, '^retired (.+)$')
local function group(of) return string.match(of, '^format=[^/]*/(group=.-)/db=') end
local function epoch(of) return tonumber(string.match(of, '/epoch=(%d+)%-') or '0') end
local mine, its = string.match(ARGV[5], '/db=(%d+)/'), string.match(carried or '', '/db=(%d+)/')
if its and its ~= mine and group(carried) == group(ARGV[5]) then carried, print = nil, nil end -- SWAPDB brought it here
local at, prefixes = string.match(texts or '', '^%d+\nepoch=(%d+) [^\n]*key%-prefix=(%S*)')
if prefixes then
  local listed = string.find(',' .. prefixes .. ',', ',' .. ARGV[14] .. ',', 1, true)
  local older = tonumber(at) < epoch(ARGV[5]) -- the master missed the change that has listed it
  if string.match(prefixes, '^[^,]*') ~= ARGV[13] or not (listed or older) then return {'PREFIX', prefixes} end
end
if carried and carried ~= ARGV[5] then
  local least = ARGV[9] == '2' and epoch(ARGV[5]) or epoch(ARGV[5]) - 1
  if ARGV[9] == '0' or group(carried) ~= group(ARGV[5]) or epoch(carried) > least then return {'FINGERPRINT', carried} end
  print = nil
elseif ARGV[9] == '0' then
  -- A change that was made since an older file was written is not in it. So the memory must be
  -- that of this process, or durable.
  local run_id = was and string.match(was, '%x+') or string.match(processes, '^%x*')
  local unbroken = run_id == run or print and durable == '1' and ARGV[3] == '1'
  local older = old == ARGV[6] and ARGV[15] == '1'
  if not carried or older or not unbroken then
    if older then retire(carried) end -- no other daemon takes it for a durable one
    return {carried and 'OLDER' or 'BLANK', ''}
  end
end

-- An eviction removes locks and leaves the seal. A count that differs from the one
-- in the seal, also after CONFIG RESETSTAT, ends the incarnation. A new
-- process counts from 0.
local restarted = print and string.match(was, '%x+') ~= run and evicted == '0'
local keeps = print and old ~= ARGV[6] and (was == process or restarted and (durable == '1' and ARGV[3] == '1'))
if keeps then
  if ARGV[3] ~= '1' then durable = '0' end
else
  lineage, durable = ARGV[4], ARGV[3]
  base = string.format('%.0f', math.max(us, tonumber(ARGV[10])))
  local floor = us + 500000
  if ARGV[7] == '1' then base, floor = '0', us end
  for _, other in ipairs({score, ARGV[8]}) do
    if tonumber(other) > floor then floor = tonumber(other) end
  end
  score = string.format('%.0f', floor)
  -- SWAPDB may have put the memory of this database into another one. Were it
  -- swapped back it would be older than what this incarnation promises, in the
  -- same process: an identity of this database elsewhere is invalidated.
  local db = 0
  while not redis.pcall('SELECT', db).err do
    if db ~= tonumber(mine) and redis.call('TYPE', seal).ok == 'zset' then
      local aside = redis.call('ZRANGE', seal, 0, 0, 'WITHSCORES')
      if string.find(aside[1], '/db=' .. mine .. '/', 1, true) then
        replace(aside[2], 'retired')
      end
    end
    db = db + 1
  end
  redis.call('SELECT', mine)
end
local identity = process .. ' ' .. lineage .. ' ' .. base .. ' ' .. durable .. ' ' .. ARGV[5]
if identity ~= old then
  replace(score, identity)
end
if ARGV[11] ~= '' and (identity ~= old or not texts) then
  redis.call('HSET', KEYS[2], ARGV[12], string.format('%.0f', us) .. '\n' .. ARGV[11])
end
if not keeps then processes = '' end
if string.match(processes, '^%x*') ~= run then
  processes = string.sub(run .. '=' .. score .. ';' .. processes, 1, 512)
  redis.call('HSET', KEYS[2], ARGV[12] .. '\nprocesses', processes)
end
return {'OK', identity, string.format('%.0f', us), score, processes}
