-- Delete many copies, each if it is its token's, of whatever kind it is: what
-- release.lua does without lo and hi, for all releases of a flush. Measured on
-- Redis 7.0 with 32 of them: 1.1 µs of the master less for each (2.0 instead of
-- 2.8-3.4 µs for SET NX and release together).
-- KEYS the locks. ARGV the token of each.
-- Returns a string with one digit for each key: 1 deleted, 0 not held by its token.
local said, others = {}, nil
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if holder == ARGV[i] then
    redis.call('DEL', KEYS[i])
    said[i] = '1'
  else
    said[i] = '0'
    if type(holder) == 'table' then -- not a string: readers, permits or foreign data
      others = others or {}
      others[#others + 1] = i
    end
  end
end
if not others then return table.concat(said) end
-- include forcerelease.lua
for _, i in ipairs(others) do said[i] = digits(letGo(KEYS[i], ARGV[i])) end
return table.concat(said)
