-- Make a running attempt last until at least E; never shorten it. KEYS 1 the work. ARGV 1
-- token 2 attempt 3 E 4 keep ms 5 the incarnation of this master's memory. Returns 1 this
-- attempt runs, 0 it was taken over or is over, 2 there is no record of it here, 3 it
-- runs according to a record of another incarnation: see worktry.lua.
local work = KEYS[1]
local h = redis.pcall('HMGET', work, 's', 'a', 'o', 'e', 'l')
if h.err then return string.find(h.err, 'WRONGTYPE', 1, true) and 0 or h end
local state, attempt, owner, ends = h[1], tonumber(h[2] or '0'), h[3], tonumber(h[4] or '0')
if not state or attempt < tonumber(ARGV[2]) then return 2 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if state ~= 'R' or owner ~= ARGV[1] or ends < now then return 0 end
redis.call('HSET', work, 'u', '') -- the holder of the token was granted the attempt
if tonumber(ARGV[3]) > ends then
  redis.call('HSET', work, 'e', ARGV[3])
  redis.call('PEXPIREAT', work, string.format('%.0f', ARGV[3] + ARGV[4]))
end
return h[5] == ARGV[5] and 1 or 3
