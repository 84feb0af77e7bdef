-- Check the queue before a lock script of FAIR. This text stands in front of that lock
-- script; it is no script of its own. KEYS n locks, then for each of them: queue,
-- expiries, writers. ARGV those of the lock script, then ticket or '', waiter, '1' writes
-- | '0' reads, n. Returns {-2} another waiter precedes this one, else what the lock
-- script returns.
--
-- queue: waiter -> ticket; writers: those that want the exclusive lock; expiries: waiter
-- -> when its entry expires, ms of the master's clock. A reader waits for the writers
-- before it, every other request for all waiters before it.
local ALL, KEYS = KEYS, {}
local count = tonumber(ARGV[#ARGV])
for i = 1, count do KEYS[i] = ALL[i] end
local function before(i)
  local queue, ends, writers = ALL[count + 3 * i - 2], ALL[count + 3 * i - 1], ALL[count + 3 * i]
  if redis.call('EXISTS', queue) == 0 then return false end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local dead = redis.call('ZRANGEBYSCORE', ends, '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, 64)
  for _, one in ipairs(dead) do
    redis.call('ZREM', queue, one)
    redis.call('ZREM', ends, one)
    redis.call('ZREM', writers, one)
  end
  local first = redis.call('ZRANGE', ARGV[#ARGV - 1] == '1' and queue or writers, 0, 0, 'WITHSCORES')
  if not first[1] or first[1] == ARGV[#ARGV - 2] then return false end
  return ARGV[#ARGV - 3] == '' or tonumber(first[2]) < tonumber(ARGV[#ARGV - 3])
end
local function mine(lock)
  if redis.pcall('GET', lock) == ARGV[1] or type(redis.pcall('ZSCORE', lock, ARGV[1])) == 'string' then return true end
  if string.byte(ARGV[1], -28) ~= 35 then return false end -- a level: its owner may have others, see shape.lua
  local owner, last = string.sub(ARGV[1], 1, -28), redis.pcall('ZRANGE', lock, -1, -1)[1]
  return last and #last == #ARGV[1] and string.sub(last, 1, #owner) == owner
end
for i, lock in ipairs(KEYS) do
  if before(i) and not mine(lock) then return {-2} end
end
