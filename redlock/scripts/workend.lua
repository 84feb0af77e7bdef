-- End an attempt: the work is done, or this attempt has failed.
-- KEYS 1 the work. ARGV 1 token 2 attempt 3 'D' done | 'F' failed 4 record end 5 max 6
-- keep ms 7 the result, absent = none; the first one stays. Returns 1 the end is recorded, 0 another attempt or another's end is here, 2
-- there is no record of this attempt here (a done work is recorded anyway). A token ends
-- in the time its attempt was requested. A lower number that began later belongs to the
-- same work started anew, after this attempt was forgotten.
local work = KEYS[1]
local h = redis.pcall('HMGET', work, 's', 'a', 'o')
if h.err then return string.find(h.err, 'WRONGTYPE', 1, true) and 0 or h end
local state, attempt, owner = h[1], tonumber(h[2] or '0'), h[3]
if not state and redis.call('EXISTS', work) == 1 then return 0 end
local ended = tonumber(ARGV[2])
local function began(token) return tonumber(string.match(token or '', '%.(%d+)$') or '0') end
if state == 'D' then return owner == ARGV[1] and ARGV[3] == 'D' and 1 or 0 end
if attempt > ended or (attempt == ended and owner ~= ARGV[1]) then return 0 end
if attempt < ended and began(owner) > began(ARGV[1]) then return 0 end
if attempt < ended and ARGV[3] == 'F' then return 2 end
redis.call('HSET', work, 's', ARGV[3] == 'D' and 'D' or 'R', 'a', ARGV[2], 'o', ARGV[1],
  'e', '0', 'm', ARGV[5], 'k', ARGV[6], 'p', '', 'u', '')
if ARGV[7] then redis.call('HSET', work, 'r', ARGV[7]) end
redis.call('PEXPIREAT', work, ARGV[4])
return 1
