-- Delete this token's copy, of whatever kind it is, or let it end soon.
-- KEYS 1 lock. ARGV 1 token 2 lo 3 hi: only if the copy ends within [lo, hi],
-- ms of the master's clock; lo '' = whenever it ends 4 slot: of permits, only
-- this one; absent or '' = whichever it is 5 at: the copy ends then, if it was to
-- last longer; absent = it is deleted.
-- Returns 1 deleted or kept until at, 0 not held by this token.
local lock, token = KEYS[1], ARGV[1]
local holder = redis.pcall('GET', lock)
if holder == token and ARGV[2] == '' and not ARGV[5] then
  redis.call('DEL', lock)
  return 1
end
if holder == false or (type(holder) == 'string' and holder ~= token) then return 0 end
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end -- not read: it may be another token's
-- include forcerelease.lua
local slot = ARGV[4] ~= '' and ARGV[4] or nil
return letGo(lock, token, tonumber(ARGV[2]), tonumber(ARGV[3]), slot, tonumber(ARGV[5] or ''))
