-- Make the writer a reader again, as it was before one acquire.lua. KEYS 1 lock. ARGV 1
-- token 2 E of that acquire 3 the reader's score, which it returned. Returns 1 taken back,
-- 0 another command has made or prolonged what is here.
local lock, score = KEYS[1], ARGV[3]
if redis.pcall('GET', lock) ~= ARGV[1] then return 0 end
-- include shape.lua
local off = upgraded(tonumber(score), tonumber(ARGV[2])) - endOf(lock)
if off ~= 0 and off ~= 1 then return 0 end -- 1: before Redis 7.0 an end may be read so
local refusal = refusesReaders(lock)
if refusal then return refusal end
redis.call('DEL', lock)
redis.call('ZADD', lock, score, ARGV[1])
redis.call('PEXPIREAT', lock, score)
return 1
