-- Checks the queue of FAIR. Other scripts include this file; it is no script of its own.
--
-- queue: waiter -> ticket; writers: those that want the exclusive lock; expiries: waiter
-- -> when its entry expires, ms of the master's clock. A reader waits for the writers
-- before it, every other request for all waiters before it.
-- include clock.lua
-- Whether another waiter precedes a request; ticket '' = it has no entry.
local function precedes(queue, ends, writers, writes, ticket, waiter)
  if redis.call('EXISTS', queue) == 0 then return false end
  local dead = redis.call('ZRANGEBYSCORE', ends, '-inf', '(' .. digits(clock()), 'LIMIT', 0, 64)
  for _, one in ipairs(dead) do
    redis.call('ZREM', queue, one)
    redis.call('ZREM', ends, one)
    redis.call('ZREM', writers, one)
  end
  local first = redis.call('ZRANGE', writes == '1' and queue or writers, 0, 0, 'WITHSCORES')
  if not first[1] or first[1] == waiter then return false end
  return ticket == '' or tonumber(first[2]) < tonumber(ticket)
end
-- Whether the token has one of the lock's permits. They are read once.
local permits = {}
local function permitted(lock, token)
  if not permits[lock] then
    permits[lock] = {}
    local now, all = clock(), redis.pcall('HGETALL', lock)
    for i = 2, #all, 2 do
      local ends, holder = permit(all[i], now)
      if ends then permits[lock][holder] = true end
    end
  end
  return permits[lock][token]
end
-- Whether the token holds the lock already, perhaps with another level of its owner.
local function holds(lock, token)
  if redis.pcall('GET', lock) == token or type(redis.pcall('ZSCORE', lock, token)) == 'string' then return true end
  if permitted(lock, token) then return true end
  if string.byte(token, -28) ~= 35 then return false end -- a level: its owner may have others, see shape.lua
  local owner, last = string.sub(token, 1, -28), redis.pcall('ZRANGE', lock, -1, -1)[1]
  return last and #last == #token and string.sub(last, 1, #owner) == owner
end
