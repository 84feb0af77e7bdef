-- A library's script, and what becomes of the ends that it sets. Sent with it by EVAL.
--
-- It is one that takes or prolongs, and leaves alone what is another's. A copy that
-- would end earlier by it keeps its end: the lease that rests on it ends
-- earlier only if a quorum says so, and what comes late must not end what its client
-- was given since by another daemon. The end is moved, so that who names it, trim.lua,
-- finds it only if nobody has given the copy another one.
-- Returns {for each key 1 it was there before | 0, for each copy that keeps its end
-- {its index, its end, the end that the script set, SHA-1 of its value}, for each key ms
-- that are left of it, below 0 = no expiry or nothing, the script's answer}.
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
    if now == false then now, set = value, clock() end -- it has set an end that had passed
    if type(now) == 'string' and set >= 0 and set < ends then
      local later = ends + 1
      redis.call('SET', key, now, 'PXAT', digits(later))
      kept[#kept + 1] = {i, later, set, redis.sha1hex(now)}
    end
  end
end
for i, key in ipairs(KEYS) do left[i] = redis.call('PTTL', key) end
return {before, kept, left, answer}
