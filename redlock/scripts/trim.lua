-- Have a copy end earlier, unless somebody has given it another end meanwhile.
-- KEYS 1 lock. ARGV 1 when it ends 2 when it shall end, ms of the master's clock
-- 3 SHA-1 of its value.
-- Returns 1 it does, 0 it is another's, or ends at another time.
-- include clock.lua
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or redis.sha1hex(value) ~= ARGV[3] then return 0 end
if endOf(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return 1
