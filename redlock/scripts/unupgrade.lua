-- Take back what one acquire.lua made, whatever it was: a copy that it created is
-- deleted, a reader that it made the writer becomes a reader again. KEYS 1 lock. ARGV 1
-- token 2 E of that acquire 3 the reader's score, '' = not known. Returns 1 taken back, 0
-- nothing of it is here.
local lock = KEYS[1]
if redis.pcall('GET', lock) ~= ARGV[1] then return 0 end
-- include shape.lua
local E, ends = tonumber(ARGV[2]), endOf(lock)
if ends < 0 then return 0 end
local off = ends - E
if off == 0 or off == -1 then
  redis.call('DEL', lock)
  return 1
end
if off < 1 or (off % 1024 ~= 1 and off % 1024 ~= 2) then return 0 end
local score = ARGV[3]
if score == '' then score = digits(ends) end
local refusal = refusesReaders(lock)
if refusal then return refusal end
redis.call('DEL', lock)
redis.call('ZADD', lock, score, ARGV[1])
redis.call('PEXPIREAT', lock, score)
return 1
