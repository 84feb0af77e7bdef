package mutants

// wait.go: the rows of the mutants of waits, of leases that are
// renewed, and of queues. A wake-up that grants without asking again is missing:
// nothing but an answer of the masters makes a Grant, so there is no line to leave out.

// brokenWaits: lines of waiters.
func brokenWaits() []Mutant {
	return []Mutant{
		patched("left", "a waiter is kept in its line after its client has left",
			Change{"redlock/waiters.go", "\ts.removeLocked(w)\n\ts.mu.Unlock()\n\tw.leaveQueue()\n\tw.done(Grant{}, ErrLeft)",
				"\tif w.over = true; !pool.Broken(\"left\") {\n\t\ts.removeLocked(w)\n\t}\n\ts.mu.Unlock()\n\tw.leaveQueue()\n\tw.done(Grant{}, ErrLeft)"}).in("waits-3"),
		patched("left-grant", "a grant whose waiter has left is kept",
			Change{"redlock/waitqueue.go", "\tcase err == nil:\n\t\ts.locker.undelivered(g)",
				"\tcase err == nil && !pool.Broken(\"left-grant\"):\n\t\ts.locker.undelivered(g)"}).in("alone-3"),
		patched("hinted", "a release is forgotten that comes while the head's question is under way",
			Change{"redlock/waitqueue.go", "\t\tln.hinted = true\n", "\t\tln.hinted = !pool.Broken(\"hinted\")\n"}).in("alone-3"),
		patched("alarm", "nobody is woken when the copies of a quorum have expired",
			Change{"redlock/keywatch.go", "\tw := ln.head\n\tif free > now || w == nil {",
				"\tif pool.Broken(\"alarm\") && free > now {\n\t\tfree = forever\n\t}\n\tw := ln.head\n\tif free > now || w == nil {"}).in("waits-3"),
		patched("poll", "nobody asks again for news that were lost",
			Change{"redlock/keywatch.go", "\t\t\tpoll = pollWatched\n",
				"\t\t\tif poll = pollWatched; pool.Broken(\"poll\") {\n\t\t\t\tpoll = forever / 2\n\t\t\t}\n"}).in("mute-3"),
		patched("arrival", "a line is served from its end",
			Change{"redlock/waitqueue.go", "\tafter := ln.tail\n", "\tafter := ln.tail\n\tif pool.Broken(\"arrival\") && !ln.fair {\n\t\tafter = ln.head\n\t}\n"}).in("crowd-3"),
		patched("time-over", "the end of a wait is forgotten while others stand before it",
			Change{"redlock/waiters.go", "if w.over || w.queue != nil && w.queue.contender == w {", "if w.over || w.queue != nil && (w.queue.contender == w || pool.Broken(\"time-over\") && w.queue.head != w) {"}).in("waits-3"),
	}
}

// brokenHolds: leases that are renewed.
func brokenHolds() []Mutant {
	return []Mutant{
		patched("renew-released", "a lease is renewed after its release",
			Change{"redlock/hold.go", "\th := s.byID[id]\n\tif h != nil {", "\th := s.byID[id]\n\tif h != nil && !pool.Broken(\"renew-released\") {"}).in("holds-3"),
		patched("renew-max", "a lease is renewed past its longest time",
			Change{"redlock/renewals.go", "\tif due >= h.stop {", "\tif due >= h.stop && !pool.Broken(\"renew-max\") {"},
			Change{"redlock/renewals.go", "\t\"time\"\n)", "\t\"time\"\n\n\t\"redlockd/pool\"\n)"}).in("holds-3"),
		patched("renew-lost", "a lease that a quorum has lost is renewed further",
			Change{"redlock/renewals.go", "\t\ts.endLocked(h)\n\t\ts.mu.Unlock()\n\t\th.onLost(ErrLostHeld)\n\t\treturn\n",
				"\t\tif pool.Broken(\"renew-lost\") {\n\t\t\th.until = now + h.grant.ttl\n\t\t\ts.scheduleLocked(h, now+h.grant.ttl/3)\n\t\t\tbreak\n\t\t}\n\t\ts.endLocked(h)\n\t\ts.mu.Unlock()\n\t\th.onLost(ErrLostHeld)\n\t\treturn\n"}).in("wiped-3"),
		patched("paused", "a lease is renewed although its validity is over",
			Change{"redlock/renewals.go", "\t\tcase now >= h.until: //", "\t\tcase now >= h.until && !pool.Broken(\"paused\"): //"}).in("holds-3"),
	}
}

// brokenQueues: FAIR.
func brokenQueues() []Mutant {
	const dir = "redlock/scripts/"
	return []Mutant{
		patched("tail", "a ticket may be taken that is below another's",
			Change{dir + "enlist.lua", "if last[2] and tonumber(last[2]) >= ticket then return {2, last[2]} end", ""}).in("askew-3"),
		patched("fair-look", "a request with FAIR that does not wait does not look at the queue",
			Change{dir + "fair.lua", "return ARGV[#ARGV - 3] == '' or tonumber(first[2]) < tonumber(ARGV[#ARGV - 3])",
				"return ARGV[#ARGV - 3] ~= '' and tonumber(first[2]) < tonumber(ARGV[#ARGV - 3])"}).in("fair-3"),
		patched("fair-first", "one who stands in the queue does not look who stands before",
			Change{dir + "fair.lua", "  if before(i) and not mine(lock) then return {-2} end",
				"  if ARGV[#ARGV - 3] == '' and before(i) and not mine(lock) then return {-2} end"}).in("queue-3"),
		patched("keep-left", "who has left a queue is kept in it once more",
			Change{"redlock/waitqueue.go", " pool.Timer // of FAIR, see refreshTickets\n", " pool.Timer // of FAIR, see refreshTickets\n\tpast []*ticket\n"},
			Change{"redlock/fair.go", "\tpart int\n}", "\tpart int\n\tpast []*ticket\n}"},
			Change{"redlock/fair.go", "ln.head.request\n\ts.mu.Unlock()\n",
				"ln.head.request\n\tpast := ln.past\n\tif ln.past = nil; pool.Broken(\"keep-left\") {\n\t\tfor w := ln.head; w != nil; w = w.next {\n\t\t\tln.past = append(ln.past, w.request.ticket)\n\t\t}\n\t}\n\ts.mu.Unlock()\n"},
			Change{"redlock/fair.go", "&ticketRefresh{line: ln, keys: keys, part: part}", "&ticketRefresh{line: ln, keys: keys, part: part, past: past}"},
			Change{"redlock/fair.go", "\treturn kept > 0\n", "\tfor _, stand := range k.past {\n\t\tc.Args = append(c.Args, stand.id, strconv.FormatInt(stand.number, 10), flag(true))\n\t\tkept++\n\t}\n\treturn kept > 0\n"}).in("fair-3"),
		patched("keep-none", "nobody is kept in a queue",
			Change{"redlock/fair.go", "\tparts, request := ln.partsLocked()",
				"\tif pool.Broken(\"keep-none\") {\n\t\ts.mu.Unlock()\n\t\treturn\n\t}\n\tparts, request := ln.partsLocked()"}).in("fair-3"),
		patched("step-out", "who has left stays in the queue until it is taken for dead",
			Change{"redlock/fair.go", "\tif w.request.ticket == nil {\n\t\treturn\n\t}\n\tl := w.waits.locker\n", "\tif w.request.ticket == nil || pool.Broken(\"step-out\") {\n\t\treturn\n\t}\n\tl := w.waits.locker\n"}).in("fair-3"),
		patched("dead", "the dead are not taken out of a queue",
			Change{dir + "fair.lua", "for _, one in ipairs(dead) do", "for _, one in ipairs({}) do"}).in("queue-3"),
	}
}
