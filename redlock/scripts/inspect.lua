-- Show the locks at keys, for people. Nothing is changed. KEYS the locks; with ARGV 2
-- only one, then its notes and the expiries of its queue. ARGV 1 the maximum number of
-- holders shown of each 2 '1' = one lock, with notes and queue. Returns for each lock
-- {kind, permits, holders, ms until the key ends, then for each holder, the longest
-- first: token, ms left, slot, note}; with ARGV 2 also the length of the queue. A value
-- too long for a lock is 'odd', too.
local most, alone = tonumber(ARGV[1]), ARGV[2] == '1'
-- include shape.lua
local now = clock()
local function note(token)
  local text = alone and redis.pcall('HGET', KEYS[2], redis.sha1hex(token))
  return type(text) == 'string' and text or ''
end
local function show(shown, token, ends, slot)
  for _, one in ipairs({token, math.max(0, ends - now), slot, note(token)}) do shown[#shown + 1] = one end
end
local function look(lock)
  local kind = kindOf(lock)
  local ends = kind == 'none' and now or endOf(lock)
  local limit = 0
  if kind == 'hash' then limit = tonumber(redis.call('HGET', lock, 'n')) end
  -- Bounds: a string is a token, a hash has at most 1024 slots. redlockd's locks always
  -- expire.
  if kind == 'string' and (ends < 0 or redis.call('STRLEN', lock) > 1024) then kind = 'odd' end
  if kind == 'hash' and redis.call('HLEN', lock) > 1025 then kind = 'odd' end
  local shown = {kind, limit, 0, math.max(0, ends - now)}
  if kind == 'string' then
    shown[3] = 1
    show(shown, redis.call('GET', lock), ends, 0)
  elseif kind == 'zset' then
    shown[3] = redis.call('ZCOUNT', lock, digits(now), '+inf')
    local last = redis.call('ZRANGE', lock, '+inf', digits(now), 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
    for i = 1, #last, 2 do show(shown, last[i], tonumber(last[i + 1]), 0) end
  elseif kind == 'hash' then
    local all, permits = redis.call('HGETALL', lock), {}
    for i = 1, #all, 2 do
      local till, token = permit(all[i + 1], now)
      if all[i] ~= 'n' and till then permits[#permits + 1] = {token, till, tonumber(all[i]) or 0} end
    end
    table.sort(permits, function(a, b) return a[2] > b[2] end)
    shown[3] = #permits
    for i = 1, math.min(most, #permits) do show(shown, unpack(permits[i])) end
  end
  return shown
end
local shown = {}
for i = 1, alone and 1 or #KEYS do shown[i] = look(KEYS[i]) end
if alone then
  local queue = redis.pcall('ZCOUNT', KEYS[3], digits(now), '+inf')
  shown[2] = type(queue) == 'number' and queue or 0
end
return shown
