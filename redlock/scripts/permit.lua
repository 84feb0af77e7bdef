-- Acquire one of n permits: the slot that the daemon names, because a quorum of masters
-- must give the same one. KEYS 1 lock. ARGV 1 token 2 E, ms of the master's clock 3 n 4
-- slot 5 '1' = the token may have another slot already. Returns 1 the slot was free, 2 it
-- was this token's and lasts at least until E (moved to a value = 4 mod 8, which no undo
-- matches), {0, free slots, at most 32, counted on from the requested one} another
-- token's or too late, {2, slot} the token has this one, {3, n} there are n permits, -1
-- not a lock.
-- include slot.lua
return takeSlot(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5] == '1')
