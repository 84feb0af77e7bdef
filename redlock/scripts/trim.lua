-- Make a copy end earlier, unless another command has given it another expiry meanwhile.
-- KEYS 1 lock. ARGV 1 its expiry 2 the new expiry, ms of the master's clock 3 SHA-1 of
-- its value. Returns 1 done, 0 the copy has another value or another expiry.
-- include clock.lua
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or redis.sha1hex(value) ~= ARGV[3] then return 0 end
if endOf(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return 1
