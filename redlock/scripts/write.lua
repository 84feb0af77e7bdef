-- Change a lock's copy for a client that treats the quorum as one Redis. KEYS 1 lock.
-- ARGV 1 what: delete, expire or set 2 E, ms of the master's clock, '' = no expiry 3
-- value to set 4 the value that must be there, '' = any 5 '1': copies without an expiry
-- are locks, too 6 of expire: '>' only to a later expiry, '<' only to an earlier one, '' to any.
-- Returns 1 done, {1, the value that was there} done with any value or of expire, 0 there is
-- nothing, or another value, or a condition is not met, -1 no lock that allows this change.
-- include clock.lua
local lock, what, E = KEYS[1], ARGV[1], ARGV[2]
local holder = redis.pcall('GET', lock)
if holder == false then return 0 end
if type(holder) ~= 'string' then return string.find(holder.err, 'WRONGTYPE', 1, true) and -1 or holder end -- readers, permits, or foreign data
if ARGV[5] ~= '1' and redis.call('PTTL', lock) < 0 then return -1 end -- redlockd's locks always expire
if ARGV[4] ~= '' and holder ~= ARGV[4] then return 0 end
if what == 'delete' then
  redis.call('DEL', lock)
elseif what == 'expire' then
  local ends, new = endOf(lock), tonumber(E)
  if ARGV[6] == '>' and (ends < 0 or new <= ends) or ARGV[6] == '<' and ends >= 0 and new >= ends then return 0 end
  redis.call('PEXPIREAT', lock, E)
elseif E == '' then
  redis.call('SET', lock, ARGV[3])
else
  redis.call('SET', lock, ARGV[3], 'PXAT', E)
end
if ARGV[4] == '' or what == 'expire' then return {1, holder} end
return 1
