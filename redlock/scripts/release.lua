-- Delete the key if it holds this token.
-- KEYS 1 lock. ARGV 1 token 2 lo 3 hi: only if the copy ends within [lo, hi],
-- ms of the master's clock; lo '' = whenever it ends.
-- Returns 1 deleted, 0 not held by this token.
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] ~= '' then
  local ends = redis.pcall('PEXPIRETIME', KEYS[1])
  if type(ends) ~= 'number' then -- before Redis 7.0
    local time, left, again
    repeat
      time, left, again = redis.call('TIME'), redis.call('PTTL', KEYS[1]), redis.call('TIME')
    until math.floor(time[2] / 1000) == math.floor(again[2] / 1000)
    if left < 0 then return 0 end -- ours always expire: this is somebody's data
    ends = time[1] * 1000 + math.floor(time[2] / 1000) + left
  end
  if ends < tonumber(ARGV[2]) or ends > tonumber(ARGV[3]) then return 0 end
end
redis.call('DEL', KEYS[1])
return 1
