-- Runs the acquires of a flush, lock by lock. Other scripts include this file; it is no
-- script of its own. KEYS of each lock: it, queue, expiries, writers. ARGV of each lock:
-- the number of its acquires, then the arguments of each, of which the first is a token
-- that only this request has.
--
-- Measured on an isolated Redis 7.0, µs of the master for a pair of SHARED (or LIMIT 256)
-- on one key: 15.4 (17.6) with 4 of them, 7.6 (9.4) with 16, 5.8 (7.7) with 32. With a call
-- for each acquire 26.9 (25.6), 18.2 (20.4) and 17.5 (20.6); SET NX 6.4, 3.1 and 2.6.
-- include queue.lua
-- width: how many arguments an acquire has. together(lock, from, to, answers) answers all
-- acquires of a lock, the first one's arguments from ARGV[from] on, or returns false and
-- changes nothing. alone(lock, i) answers one of them. Returns a string with the digits
-- that the acquires answer, or, if an answer is no digit, an array. {-2}: another waiter
-- precedes it. What fails at one lock is the answer of that lock's acquires only.
local function acquires(width, writes, together, alone)
  local answers, queues, at = {}, {}, 1
  for k = 2, #KEYS, 4 do queues[#queues + 1] = KEYS[k] end
  local queued = redis.call('EXISTS', unpack(queues)) > 0
  local function acquire(k, from, to)
    local lock = KEYS[k]
    local behind = queued and precedes(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], writes, '', '')
    if not behind and to > from + width and together(lock, from, to, answers) then return end
    for i = from, to, width do
      answers[#answers + 1] = behind and not holds(lock, ARGV[i]) and {-2} or alone(lock, i)
    end
  end
  for k = 1, #KEYS, 4 do
    local n, first = tonumber(ARGV[at]), #answers + 1
    local ok, failed = pcall(acquire, k, at + 1, at + n * width)
    for i = first, ok and 0 or first + n - 1 do answers[i] = type(failed) == 'table' and failed or {err = failed} end
    at = at + 1 + n * width
  end
  for _, one in ipairs(answers) do
    if type(one) ~= 'number' or one < 0 then return answers end
  end
  return table.concat(answers) .. '' -- in an embedded master one number stays a number
end
