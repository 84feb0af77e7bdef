-- Give keys a value and an expiry for a client that treats the quorum as one Redis: all
-- of the keys, or none. A free key is taken, and one with a value that may be there is
-- given another expiry, longer or shorter.
-- KEYS the locks. ARGV 1 E, ms of the master's clock, '' = no expiry 2 '1' = a copy without
-- an expiry is a lock, too 3 how many leading bytes of a value are compared, '' = all 4 the
-- value that may be there, '' = none may; then the value of each key.
-- Returns {1, for each key 1 it existed before | 0, for each copy that keeps a later expiry
-- {its index, its expiry, the requested one, SHA-1 of its value}}, 0 a key has another
-- value, or it is too late, -1 a key is no lock of this kind.
--
-- A copy that is to end earlier keeps its expiry: the lease ends earlier only if a quorum
-- agrees, and a late command must not end what another daemon has given its client since.
-- The expiry is always moved, so that trim.lua, which names the expiry, finds it only if no
-- other command has given the copy another one.
-- include clock.lua
local E, bytes, may, had, same = tonumber(ARGV[1]), tonumber(ARGV[3]), ARGV[4], {}, {}
local function part(value) return bytes and string.sub(value, 1, bytes) or value end
for i, lock in ipairs(KEYS) do
  local holder = redis.pcall('GET', lock)
  if holder == false then
    if E and E <= clock() then return 0 end
    had[i] = false
  elseif type(holder) ~= 'string' then
    return string.find(holder.err, 'WRONGTYPE', 1, true) and -1 or holder -- readers, permits, or foreign data
  else
    had[i], same[i] = endOf(lock), holder == ARGV[4 + i]
    if may == '' or part(holder) ~= part(may) or (had[i] < 0 and ARGV[2] ~= '1') then return 0 end
  end
end
local before, kept = '', {}
for i, lock in ipairs(KEYS) do
  local value, ends = ARGV[4 + i], ARGV[1]
  before = before .. (had[i] and '1' or '0')
  if had[i] and E then
    local off = same[i] and 4 or 6 -- no undo matches them
    local new = E + off
    if had[i] >= new then
      local later = had[i] + 1
      later = later + (off - later) % 8
      kept[#kept + 1] = {i, later, new, redis.sha1hex(value)}
      new = later
    end
    ends = digits(new)
  end
  if E then redis.call('SET', lock, value, 'PXAT', ends) else redis.call('SET', lock, value) end
end
return {1, before, kept}
