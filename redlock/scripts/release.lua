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
-- include shape.lua
local lo, hi = tonumber(ARGV[2]), tonumber(ARGV[3])
local function spared(ends) return lo and (ends < lo or ends > hi) end
local kind = kindOf(lock)
if kind == 'odd' then return 0 end
if kind == 'string' then
  local ends = endOf(lock)
  if ends < 0 or spared(ends) then return 0 end -- ours always expire
  redis.call('DEL', lock)
  return 1
end
local now = clock()
if kind == 'zset' then
  local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
  if score < now or spared(score) then return 0 end
  redis.call('ZREM', lock, token)
  local last = lastOf(lock)
  if last then redis.call('PEXPIREAT', lock, digits(last)) end
  return 1
end
local all, last, released = redis.call('HGETALL', lock), 0, 0
for i = 1, #all, 2 do
  if all[i] ~= 'n' then
    local ends, other = permit(all[i + 1], now)
    if other == token and not spared(ends) and (not ARGV[4] or ARGV[4] == all[i]) then
      redis.call('HDEL', lock, all[i])
      released = 1
    elseif ends then
      last = math.max(last, ends)
    end
  end
end
if released == 1 and last == 0 then
  redis.call('DEL', lock)
elseif released == 1 then
  redis.call('PEXPIREAT', lock, digits(last))
end
return released
