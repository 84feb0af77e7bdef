-- Enter a queue at its end, or stay in it with a later ticket. KEYS for each lock: queue,
-- expiries, writers. ARGV 1 ticket 2 waiter 3 when the entry expires unless it is
-- refreshed, ms of the master's clock 4 '1' writes | '0' reads 5 the maximum length of
-- the queue. Returns {1}, {2, last ticket, which must be lower}, {3} full.
local ticket, waiter = tonumber(ARGV[1]), ARGV[2]
for i = 1, #KEYS, 3 do
  if not redis.call('ZSCORE', KEYS[i], waiter) then
    if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[5]) then return {3} end
    local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')
    if last[2] and tonumber(last[2]) >= ticket then return {2, last[2]} end
  end
end
for i = 1, #KEYS, 3 do
  redis.call('ZADD', KEYS[i], 'GT', ARGV[1], waiter)
  redis.call('ZADD', KEYS[i + 1], 'GT', ARGV[3], waiter)
  if ARGV[4] == '1' then redis.call('ZADD', KEYS[i + 2], 'GT', ARGV[1], waiter) end
  local ends = redis.call('ZRANGE', KEYS[i + 1], -1, -1, 'WITHSCORES')[2]
  for k = i, i + 2 do redis.call('PEXPIREAT', KEYS[k], ends) end
end
return {1}
