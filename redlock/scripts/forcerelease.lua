-- Deletes a token's copy after a check of its kind. Other scripts include this file after
-- the code that handles most copies; it is no script of its own.
-- include shape.lua
-- What a script has found at a lock, which only itself changes meanwhile: a flush often
-- releases many readers or permits of one key.
local found = {}
local function find(lock)
  if not found[lock] then
    local kind, last = kindOf(lock)
    found[lock] = {kind = kind, last = last, now = clock(), gone = {}}
  end
  return found[lock]
end
-- The fields and values of a hash of permits, and by token where its values are.
local function permitsOf(lock, it)
  if it.all then return it.all, it.at end
  it.all, it.at = redis.call('HGETALL', lock), {}
  for i = 1, #it.all, 2 do
    local value = it.all[i + 1]
    local token = string.sub(value, (string.find(value, ' ', 1, true) or 0) + 1)
    it.at[token] = it.at[token] or {}
    table.insert(it.at[token], i)
  end
  return it.all, it.at
end
-- letGo for several readers, without what settle does: 1 or 0 of each.
local function removeReaders(lock, tokens)
  local it, released = find(lock), {}
  local now, last, gone, left = it.now, it.last, it.gone, {}
  local scores = redis.call('ZMSCORE', lock, unpack(tokens))
  for i, token in ipairs(tokens) do
    local score = tonumber(scores[i] or '-1')
    released[i] = score >= now and not left[token] and '1' or '0'
    if released[i] == '1' then
      gone[#gone + 1], left[token] = token, true
      if score == last then it.moved = true end
    end
  end
  return released
end
-- letGo without what settle does.
local function remove(lock, token, lo, hi, slot, at)
  local function spared(ends) return lo and (ends < lo or ends > hi) end
  local it = find(lock)
  if it.kind == 'odd' or it.kind == 'none' then return 0 end
  if it.kind == 'string' then
    local ends = endOf(lock)
    if (ends < 0 and not at) or spared(ends) then return 0 end -- redlockd's locks always expire
    if not at then
      redis.call('DEL', lock)
    elseif ends < 0 or ends > at then
      redis.call('PEXPIREAT', lock, digits(at))
    end
    return 1
  end
  if it.kind == 'zset' then -- it ends with its last reader
    local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if score < it.now or spared(score) then return 0 end
    if at then
      redis.call('ZADD', lock, 'XX', digits(math.min(score, at)), token)
    else
      it.gone[#it.gone + 1] = token
    end
    it.moved = it.moved or score == it.last
    return 1
  end
  -- The hash ends with its last permit, so the others matter only if that one goes.
  local all, where = permitsOf(lock, it)
  local released = 0
  for _, i in ipairs(where[token] or {}) do
    if all[i] ~= 'n' and (not slot or slot == all[i]) then
      local ends, holder = permit(all[i + 1], it.now)
      if holder == token and not spared(ends) then
        released, it.moved = 1, it.moved or ends >= it.last - 1
        if at then
          all[i + 1] = digits(math.min(ends, at)) .. ' ' .. token
          redis.call('HSET', lock, all[i], all[i + 1])
        else
          it.gone[#it.gone + 1] = all[i]
          all[i + 1] = ''
        end
      end
    end
  end
  return released
end
-- Deletes the readers or permits that have gone, and moves the expiry of a lock whose last
-- one was among them.
local function settle(lock)
  local it = found[lock]
  if #it.gone > 0 then
    if it.kind == 'zset' then redis.call('ZREM', lock, unpack(it.gone)) else redis.call('HDEL', lock, unpack(it.gone)) end
    it.gone = {}
  end
  if not it.moved then return end
  it.moved = false
  local last = 0
  if it.kind == 'zset' then
    last = lastOf(lock)
    if not last then return end
  else
    for i = 1, #it.all, 2 do
      if it.all[i] ~= 'n' then last = math.max(last, permit(it.all[i + 1], it.now) or 0) end
      if last >= it.last then return end -- another one lasts as long
    end
  end
  if last == 0 then redis.call('DEL', lock) else redis.call('PEXPIREAT', lock, digits(last)) end
end
-- The copy is deleted only if it ends within [lo, hi], nil = whenever it ends; of
-- permits, only this slot, nil = whichever it is. With at, ms of the master's clock, it is
-- not deleted: it ends then, or earlier if it was to. Returns 1 deleted or kept until at,
-- 0 not held.
local function letGo(lock, token, lo, hi, slot, at)
  local released = remove(lock, token, lo, hi, slot, at)
  settle(lock)
  return released
end
