-- Make held locks last until at least E, each for its token; never shorten one. The
-- extensions of a flush that stand together are one call.
-- Measured on an isolated Redis 7.0, µs of the master for an extension: 7.0 with 4 in a
-- call, 4.0 with 16, 2.8 with 100; with a call for each 10.4, 8.4 and 6.4. Five masters with
-- 10 000 leases with HOLD and 1000 renewals a second, nothing else: 50 instead of 80 µs for a
-- renewal; beside 64 callers, a pair cost client, daemon and masters 0.89 of before.
-- KEYS the locks. ARGV for each: token, E, ms of the master's clock; behind an extension
-- that shares no call: only a copy that lasts as long as this counts, 0 = any. Returns for each 1 this token holds it now, {1} as a reader,
-- {1, slot, n} with one of n permits, 0 it does not, or an error: of one that is alone just
-- that, else a string of digits, or an array if not all are digits. The new expiry is a
-- value = 4 or 5 (mod 8), which no undo matches. That of an exclusive lock is always moved:
-- a command that ends it earlier names the expiry, trim.lua.
-- include shape.lua
local least = tonumber(ARGV[2 * #KEYS + 1] or '') or 0
local function extendJoint(lock, token, E)
  local kind, ends, n = kindOf(lock)
  local now = clock()
  if kind == 'zset' then
    local score = tonumber(redis.call('ZSCORE', lock, token) or '-1')
    if score < math.max(now, least) then return 0 end
    redis.call('ZADD', lock, 'XX', digits(prolonged(score, E)), token)
    endAt(lock, (lastOf(lock)))
    return {1}
  elseif kind ~= 'hash' then
    return 0
  end
  local all = redis.call('HGETALL', lock)
  for i = 1, #all, 2 do
    local until_, other = permit(all[i + 1], now)
    if all[i] ~= 'n' and other == token and until_ >= least then
      local new = prolonged(until_, E)
      redis.call('HSET', lock, all[i], digits(new) .. ' ' .. token)
      if new > ends then redis.call('PEXPIREAT', lock, digits(new)) end
      return {1, tonumber(all[i]), n}
    end
  end
  return 0
end
local answers, digitsOnly = redis.call('MGET', unpack(KEYS)), true
for i, lock in ipairs(KEYS) do
  local holder, token, E = answers[i], ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  answers[i] = 0
  if holder == token then
    local ends = endOf(lock)
    if ends >= least then -- redlockd's locks always expire: others are foreign data
      local new = prolonged(ends, E)
      if new == ends then new = new + 1 end
      redis.call('PEXPIREAT', lock, digits(new))
      answers[i] = 1
    end
  elseif not holder then -- nothing, or not a string: readers, permits or foreign data
    local ok, answer = pcall(extendJoint, lock, token, E)
    if not ok and type(answer) ~= 'table' then answer = {err = answer} end -- before Redis 7.0
    answers[i], digitsOnly = answer, digitsOnly and answer == 0
  end
end
if #ARGV > 2 * #KEYS then return answers[1] end
return digitsOnly and table.concat(answers) .. '' or answers -- of one element gopher-lua's concat is a number
