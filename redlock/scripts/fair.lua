-- Check the queue before a lock script of FAIR. This text stands in front of that lock
-- script; it is no script of its own. KEYS n locks, then for each of them: queue,
-- expiries, writers. ARGV those of the lock script, then ticket or '', waiter, '1' writes
-- | '0' reads, n. Returns {-2} another waiter precedes this one, else what the lock
-- script returns.
local ALL, KEYS = KEYS, {}
local count = tonumber(ARGV[#ARGV])
for i = 1, count do KEYS[i] = ALL[i] end
-- include queue.lua
for i, lock in ipairs(KEYS) do
  local at = count + 3 * i - 2
  if precedes(ALL[at], ALL[at + 1], ALL[at + 2], ARGV[#ARGV - 1], ARGV[#ARGV - 3], ARGV[#ARGV - 2]) and not holds(lock, ARGV[1]) then return {-2} end
end
