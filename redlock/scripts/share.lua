-- Acquire as a reader, or as a level of a reentrant lock, which only levels of its owner
-- join. The writer with this token whose copy ends exactly at ARGV 3 becomes a reader. A
-- command that comes late, after the token has become the writer again through another
-- daemon, finds another expiry. KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock 3
-- the expiry of the writer's copy, '' = no writer is downgraded. Returns
-- 1 is a reader now, 2 was one and lasts at least until E (moved to a value = 4 mod 8,
-- which no undo matches), 3 was the writer and is a reader as long as that, {0, ends} is
-- the writer until then, 0 another token's or too late, -1 not a lock.
-- include reader.lua
return share(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
