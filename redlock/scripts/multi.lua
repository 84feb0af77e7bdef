-- Acquire several keys: all of them or none. Copies that were this token's before are
-- prolonged, missing copies are created. KEYS the locks. ARGV 1 token 2 E, ms of the
-- master's clock 3 '1' = as a reader. Returns {1, for each key 0 created | 1 this token's
-- from before}, {0, index of a key that another token has}, {0, 0} too late, {-1, index
-- of a key that is no lock}.
local token, E, reads = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
-- include shape.lua
local now = clock()
if E <= now then return {0, 0} end
local answers, had = {1}, {}
local free = redis.call('EXISTS', unpack(KEYS)) == 0 -- usually; of three keys it saves a tenth
for i, lock in ipairs(KEYS) do
  local kind, _, reader = 'none'
  if not free then kind, _, reader = kindOf(lock) end
  if kind == 'odd' then return {-1, i} end
  if kind == 'zset' and reads then
    had[i] = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if had[i] < now then had[i] = nil end
    if ownerOf(reader) ~= ownerOf(token) then return {0, i} end
  elseif kind == 'string' and not reads and redis.call('GET', lock) == token and endOf(lock) >= 0 then
    had[i] = endOf(lock)
  elseif kind ~= 'none' then
    return {0, i}
  end
  answers[i + 1] = had[i] and 1 or 0
end
for i, lock in ipairs(KEYS) do
  local ends = had[i] and prolonged(had[i], E) or E
  if ends == had[i] and not reads then ends = ends + 1 end -- as acquire.lua does
  if reads then
    purge(lock, now)
    redis.call('ZADD', lock, digits(ends), token)
    endAt(lock, (lastOf(lock)))
  elseif had[i] then
    redis.call('PEXPIREAT', lock, digits(ends))
  end
end
for i, lock in ipairs(KEYS) do -- last: what made copies answers no error, or nobody would take them back
  if not reads and not had[i] then redis.call('SET', lock, token, 'PXAT', ARGV[2]) end
end
return answers
