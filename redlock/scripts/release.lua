-- Delete this token's copy, of whatever kind it is.
-- KEYS 1 lock. ARGV 1 token 2 lo 3 hi: only if the copy ends within [lo, hi],
-- ms of the master's clock; lo '' = whenever it ends 4 slot: of permits, only
-- this one; absent = whichever it is.
-- Returns 1 deleted, 0 not held by this token.
local lock, token = KEYS[1], ARGV[1]
local holder = redis.pcall('GET', lock)
if holder == token and ARGV[2] == '' then
  redis.call('DEL', lock)
  return 1
end
if holder == false or (type(holder) == 'string' and holder ~= token) then return 0 end
-- include forcerelease.lua
return letGo(lock, token, tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4])
