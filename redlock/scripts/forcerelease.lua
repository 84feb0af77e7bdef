-- Deletes a token's copy after a check of its kind. Other scripts include this file after
-- the code that handles most copies; it is no script of its own.
-- include shape.lua
-- The copy is deleted only if it ends within [lo, hi], nil = whenever it ends; of
-- permits, only this slot, nil = whichever it is. With at, ms of the master's clock, it is
-- not deleted: it ends then, or earlier if it was to. Returns 1 deleted or kept until at,
-- 0 not held.
local function letGo(lock, token, lo, hi, slot, at)
  local function spared(ends) return lo and (ends < lo or ends > hi) end
  local kind, last = kindOf(lock)
  if kind == 'odd' or kind == 'none' then return 0 end
  if kind == 'string' then
    local ends = endOf(lock)
    if (ends < 0 and not at) or spared(ends) then return 0 end -- redlockd's locks always expire
    if not at then
      redis.call('DEL', lock)
    elseif ends < 0 or ends > at then
      redis.call('PEXPIREAT', lock, digits(at))
    end
    return 1
  end
  local now = clock()
  if kind == 'zset' then -- it ends with its last reader
    local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if score < now or spared(score) then return 0 end
    if at then
      redis.call('ZADD', lock, 'XX', digits(math.min(score, at)), token)
    else
      redis.call('ZREM', lock, token)
    end
    last = score == last and lastOf(lock)
    if last then redis.call('PEXPIREAT', lock, digits(last)) end
    return 1
  end
  -- The hash ends with its last permit, so the others matter only if that one goes.
  local all, tail, released, wasLast = redis.call('HGETALL', lock), ' ' .. token, 0, false
  for i = 1, #all, 2 do
    if all[i] ~= 'n' and string.sub(all[i + 1], -#tail) == tail and (not slot or slot == all[i]) then
      local ends, holder = permit(all[i + 1], now)
      if holder == token and not spared(ends) then
        released, wasLast = 1, wasLast or ends >= last - 1
        if at then
          all[i + 1] = digits(math.min(ends, at)) .. tail
          redis.call('HSET', lock, all[i], all[i + 1])
        else
          redis.call('HDEL', lock, all[i])
          all[i + 1] = ''
        end
      end
    end
  end
  if wasLast then
    last = 0
    for i = 1, #all, 2 do
      if all[i] ~= 'n' then last = math.max(last, permit(all[i + 1], now) or 0) end
    end
    if last == 0 then redis.call('DEL', lock) else redis.call('PEXPIREAT', lock, digits(last)) end
  end
  return released
end
