-- Show a counter, or delete it for the operator if it has not changed since it was shown.
-- KEYS 1 counter. ARGV 1 this master's incarnation id 2 '1' if a missing counter never
-- existed 3 '' to show it, else ms of this master's clock until which it may be deleted 4
-- the text that this master has shown. Returns {1 shown or deleted | 0 it has changed, or
-- the time is over | -1 not a counter, value, 1 trusted | 0, its text, '' for none, ms of
-- this master's clock}.
local time, stored = redis.call('TIME'), redis.pcall('GET', KEYS[1])
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function digits(ms) return string.format('%.0f', ms) end
if type(stored) == 'table' then return string.find(stored.err, 'WRONGTYPE', 1, true) and {-1, '0', 0, '', digits(now)} or stored end
local value, tag = '0', '-'
if stored then
  value, tag = string.match(stored, '^(%d+)@([%w-]+)$')
  if not value then return {-1, '0', 0, '', digits(now)} end
end
if tag == '-' and ARGV[2] == '1' then tag = ARGV[1] end -- see nextid.lua
local code = 1
if ARGV[3] ~= '' then
  if (stored or '') ~= ARGV[4] or now > tonumber(ARGV[3]) then
    code = 0
  elseif stored then
    redis.call('DEL', KEYS[1])
  end
end
return {code, value, tag == ARGV[1] and 1 or 0, stored or '', digits(now)}
