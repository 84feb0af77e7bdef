-- Delete many copies, each if it is its token's, of whatever kind it is: what
-- release.lua does without lo and hi, for all releases of a flush. Measured on an
-- isolated Redis 7.0, µs of the master for SET NX and release together: 2.4 with 4 of
-- them, 1.4 with 16, 1.2 with 64; with one GET and DEL for each 2.6, 1.7 and 1.5.
-- DELIFEQ for each, on Valkey 9.1: 7.7 instead of 9.2 with 4, 3.1 instead of 3.5 with 16,
-- 2.0 instead of 2.1 with 64. It fails for readers and permits, so it would be a second
-- way to release; that is not worth it.
-- KEYS the locks. ARGV the token of each.
-- Returns a string with one digit for each key: 1 deleted, 0 not held by its token.
local answers, deleted, others = redis.call('MGET', unpack(KEYS)), {}, {}
for i = 1, #KEYS do
  local holder = answers[i]
  answers[i] = '0'
  if holder == ARGV[i] then
    answers[i] = '1'
    deleted[#deleted + 1] = KEYS[i]
  elseif not holder then -- nothing, or not a string: readers, permits or foreign data
    others[#others + 1] = i
  end
end
if #deleted > 0 and redis.call('DEL', unpack(deleted)) < #deleted then -- a key stands there twice
  local first = {}
  for i = 1, #KEYS do
    if answers[i] == '1' and first[KEYS[i]] then answers[i] = '0' end
    if answers[i] == '1' then first[KEYS[i]] = true end
  end
end
if #others == 0 then return table.concat(answers) end
-- include forcerelease.lua
local locks, which = {}, {}
for _, i in ipairs(others) do
  local lock = KEYS[i]
  local of = which[lock]
  if not of then
    of = {}
    which[lock], locks[#locks + 1] = of, lock
  end
  of[#of + 1] = i
end
for _, lock in ipairs(locks) do
  local of = which[lock]
  if find(lock).kind == 'zset' then
    local tokens = {}
    for k, i in ipairs(of) do tokens[k] = ARGV[i] end
    local released = removeReaders(lock, tokens)
    for k, i in ipairs(of) do answers[i] = released[k] end
  else
    for _, i in ipairs(of) do answers[i] = remove(lock, ARGV[i]) == 1 and '1' or '0' end
  end
  settle(lock)
end
return table.concat(answers)
