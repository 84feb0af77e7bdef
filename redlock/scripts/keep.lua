-- Refresh waiters in a queue; waiters that a master has lost get their place again. KEYS
-- for each lock: queue, expiries, writers. ARGV 1 when they expire, ms of the master's
-- clock, then for each: waiter, ticket, '1' writes | '0' reads.
-- Returns how many.
for i = 1, #KEYS, 3 do
  for a = 2, #ARGV, 3 do
    redis.call('ZADD', KEYS[i], 'GT', ARGV[a + 1], ARGV[a])
    redis.call('ZADD', KEYS[i + 1], 'GT', ARGV[1], ARGV[a])
    if ARGV[a + 2] == '1' then redis.call('ZADD', KEYS[i + 2], 'GT', ARGV[a + 1], ARGV[a]) end
  end
  local ends = redis.call('ZRANGE', KEYS[i + 1], -1, -1, 'WITHSCORES')[2]
  for k = i, i + 2 do redis.call('PEXPIREAT', KEYS[k], ends) end
end
return (#ARGV - 1) / 3
