-- Write, or drop, the note for people about one holder. Notes carry no guarantee. KEYS 1
-- the notes of a lock: hash, SHA-1 of a token -> text. ARGV 1 token 2 the text, '' = drop
-- it 3 E, ms of the master's clock: until when it is kept 4 '1' = a text that is there stays.
-- Returns 1.
local notes, whose = KEYS[1], redis.sha1hex(ARGV[1])
if ARGV[2] == '' then
  redis.call('HDEL', notes, whose)
  return 1
end
-- include shape.lua
if clock() >= tonumber(ARGV[3]) then return 1 end
-- Notes of holders that have lapsed go with the key. If new holders always keep it from
-- ending, it starts again; only if it can be written.
if ARGV[4] ~= '1' or not redis.call('HGET', notes, whose) then redis.call('HSET', notes, whose, ARGV[2]) end
if redis.call('HLEN', notes) > 1024 then
  redis.call('DEL', notes)
  redis.call('HSET', notes, whose, ARGV[2])
end
if endOf(notes) < tonumber(ARGV[3]) then redis.call('PEXPIREAT', notes, ARGV[3]) end
return 1
