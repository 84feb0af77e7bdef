-- Run a library's script so that no copy ends earlier. EVAL sends this text together with
-- the script.
--
-- The script takes or prolongs, and leaves the copies of other tokens alone. A copy that
-- it would shorten keeps its expiry. The lease on that copy ends earlier only if a quorum
-- agrees, and a late command must not end what another daemon has given its client since.
-- The expiry is moved, so that trim.lua, which names the expiry, finds it only if no
-- other command has given the copy another one. Returns {for each key 1 it existed before
-- | 0, for each copy that keeps its expiry {its index, its expiry, the expiry that the
-- script set, SHA-1 of its value}, for each key the remaining ms, below 0 = no expiry or
-- nothing, the script's answer}.
local function asked(...)
-- the script
end
-- include clock.lua
local before, had = '', {}
for i, key in ipairs(KEYS) do
  before = before .. redis.call('EXISTS', key)
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then had[i] = {value, endOf(key)} end
end
local answer, kept, left = asked(), {}, {}
for i, key in ipairs(KEYS) do
  local value, ends = unpack(had[i] or {})
  if value and ends >= 0 then
    local now, set = redis.pcall('GET', key), endOf(key)
    if now == false then now, set = value, clock() end -- it has set an expiry that had passed
    if type(now) == 'string' and set >= 0 and set < ends then
      local later = ends + 1
      redis.call('SET', key, now, 'PXAT', digits(later))
      kept[#kept + 1] = {i, later, set, redis.sha1hex(now)}
    end
  end
end
for i, key in ipairs(KEYS) do left[i] = redis.call('PTTL', key) end
return {before, kept, left, answer}
