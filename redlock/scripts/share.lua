-- Acquire as a reader, or as a level of a reentrant lock, which only levels of its owner
-- join. The writer with this token whose copy ends exactly at ARGV 3 becomes a reader. A
-- command that comes late, after the token has become the writer again through another
-- daemon, finds another expiry. KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock 3
-- the expiry of the writer's copy, '' = no writer is downgraded. Returns
-- 1 is a reader now, 2 was one and lasts at least until E (moved to a value = 4 mod 8,
-- which no undo matches), 3 was the writer and is a reader as long as that, {0, ends} is
-- the writer until then, 0 another token's or too late, -1 not a lock.
local lock, E = KEYS[1], tonumber(ARGV[2])
-- include shape.lua
local now = clock()
if E <= now then return 0 end
local kind, last, reader = kindOf(lock)
if kind == 'odd' then return -1 end
if kind == 'hash' then return 0 end
local said, ends = 1, E
if kind == 'string' then
  if redis.call('GET', lock) ~= ARGV[1] then return 0 end
  local had = endOf(lock)
  if had < 0 then return 0 end -- redlockd's locks always expire: this is foreign data
  if had ~= tonumber(ARGV[3]) then return {0, had} end
  said, ends = 3, prolonged(had, E)
  local refusal = refusesReaders(lock)
  if refusal then return refusal end
  redis.call('DEL', lock)
elseif kind == 'zset' then
  purge(lock, now)
  local owner = ownerOf(ARGV[1])
  if owner ~= ownerOf(reader) then return 0 end
  -- What shows and prolongs all levels of an owner reads that many holders (readlock.go).
  if owner ~= '' and redis.call('ZCARD', lock) >= 1000 then return 0 end
  if owner ~= '' then ends = math.max(E, last) end -- an outer level never outlasts an inner one
end
if redis.call('ZADD', lock, 'NX', digits(ends), ARGV[1]) == 0 then
  said, ends = 2, prolonged(tonumber(redis.call('ZSCORE', lock, ARGV[1])), E)
  redis.call('ZADD', lock, digits(ends), ARGV[1])
end
if not last or ends > last then redis.call('PEXPIREAT', lock, digits(ends)) end
return said
