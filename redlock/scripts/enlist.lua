-- Enter a queue at its end, or stay in it with a later ticket; without a maximum, refresh
-- waiters in it: those that a master has lost get their places again. KEYS for each lock:
-- queue, expiries, writers. ARGV 1 when the entries expire unless they are refreshed, ms of
-- the master's clock 2 the maximum length of the queue, for one waiter that enters | '', then
-- for each: waiter, ticket, '1' writes | '0' reads. Returns {1}, {2, last ticket, which must
-- be lower}, {3} full.
local full, waiter, ticket = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
for i = 1, full and #KEYS or 0, 3 do
  if not redis.call('ZSCORE', KEYS[i], waiter) then
    if redis.call('ZCARD', KEYS[i]) >= full then return {3} end
    local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')
    if last[2] and tonumber(last[2]) >= ticket then return {2, last[2]} end
  end
end
for i = 1, #KEYS, 3 do
  for a = 3, #ARGV, 3 do
    redis.call('ZADD', KEYS[i], 'GT', ARGV[a + 1], ARGV[a])
    redis.call('ZADD', KEYS[i + 1], 'GT', ARGV[1], ARGV[a])
    if ARGV[a + 2] == '1' then redis.call('ZADD', KEYS[i + 2], 'GT', ARGV[a + 1], ARGV[a]) end
  end
  local ends = redis.call('ZRANGE', KEYS[i + 1], -1, -1, 'WITHSCORES')[2]
  for k = i, i + 2 do redis.call('PEXPIREAT', KEYS[k], ends) end
end
return {1}
