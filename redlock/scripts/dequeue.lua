-- Leave a queue.
-- KEYS for each lock: queue, expiries, writers. ARGV 1 waiter. Returns 1 it was in the
-- queue, 0 it was not.
local stood = 0
for i = 1, #KEYS do stood = math.max(stood, redis.call('ZREM', KEYS[i], ARGV[1])) end
return stood
