-- Deletes a token's copy after a check of its kind. Other scripts include this file after
-- the code that handles most copies; it is no script of its own.
-- include shape.lua
-- The copy is deleted only if it ends within [lo, hi], nil = whenever it ends; of
-- permits, only this slot, nil = whichever it is. With at, ms of the master's clock, it is
-- not deleted: it ends then, or earlier if it was to. Returns 1 deleted or kept until at,
-- 0 not held.
local function letGo(lock, token, lo, hi, slot, at)
  local function spared(ends) return lo and (ends < lo or ends > hi) end
  local kind = kindOf(lock)
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
  if kind == 'zset' then
    local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if score < now or spared(score) then return 0 end
    if at then
      redis.call('ZADD', lock, 'XX', digits(math.min(score, at)), token)
    else
      redis.call('ZREM', lock, token)
    end
    local last = lastOf(lock)
    if last then redis.call('PEXPIREAT', lock, digits(last)) end
    return 1
  end
  local all, last, released = redis.call('HGETALL', lock), 0, 0
  for i = 1, #all, 2 do
    if all[i] ~= 'n' then
      local ends, other = permit(all[i + 1], now)
      if other == token and not spared(ends) and (not slot or slot == all[i]) then
        if at then
          redis.call('HSET', lock, all[i], digits(math.min(ends, at)) .. ' ' .. token)
          last = math.max(last, math.min(ends, at))
        else
          redis.call('HDEL', lock, all[i])
        end
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
end
