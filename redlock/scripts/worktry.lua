-- Start an attempt at a piece of work, unless another attempt runs or the work is over.
-- KEYS 1 the work: a hash of s state R | D, a attempt, o owner's token, e lease end, m
-- max, k keep ms, p the record before this attempt, t text for people, u '1' as long as
-- the record is unproved: the master made it without an earlier record. If such an
-- attempt was granted to no client and not taken back, it proves nothing about earlier
-- attempts. l the incarnation of this master's memory in which the attempt was written. A
-- record of another incarnation may have come back with an older file, so it is not
-- reliable either: later attempts and ends that this master acknowledged may be missing.
-- r the result, of done work whose worker left one.
-- ARGV 1 token 2 attempt 3 max 4 lease end 5 record end, ms of the master's clock 6 keep
-- ms 7 text 8 the incarnation of this master's memory. Returns {1, 1 if earlier attempts
-- are unknown | 0} started, {2, attempt, ms, owner} running that much longer, {3,
-- attempt, 0, owner[, result]} done, {4, attempt} no attempt left, {5, attempt} the proposed attempt is
-- taken, {-1} not work.
local work = KEYS[1]
local h = redis.pcall('HMGET', work, 's', 'a', 'o', 'e', 'u', 'l', 'r')
if h.err then return string.find(h.err, 'WRONGTYPE', 1, true) and {-1} or h end
local state, attempt, owner, ends = h[1], tonumber(h[2] or '0'), h[3], tonumber(h[4] or '0')
if not state and redis.call('EXISTS', work) == 1 then return {-1} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if state == 'D' then return {3, attempt, 0, owner, h[7] or nil} end
if state and ends >= now then return {2, attempt, ends - now, owner} end
if attempt >= tonumber(ARGV[3]) then return {4, attempt} end
if attempt >= tonumber(ARGV[2]) then return {5, attempt} end
if tonumber(ARGV[4]) <= now then return {5, attempt} end -- arrived too late to start anything
local before = state and (attempt .. ' ' .. ends .. ' ' .. owner) or ''
local unknown = not state or h[5] == '1' or h[6] ~= ARGV[8]
redis.call('HSET', work, 's', 'R', 'a', ARGV[2], 'o', ARGV[1], 'e', ARGV[4],
  'm', ARGV[3], 'k', ARGV[6], 'p', before, 't', ARGV[7],
  'u', unknown and '1' or '', 'l', ARGV[8])
redis.call('PEXPIREAT', work, ARGV[5])
return {1, unknown and 1 or 0}
