package mutants

// wait.go: the rows of the mutants of waits, of leases that are renewed, and of queues.
// A wake-up that grants without a ballot is missing: only the masters' answers make a
// Grant, so there is no statement to leave out.

// brokenWaits: rows of wait queues.
func brokenWaits() []Mutant {
	return []Mutant{
		patched("left", "a waiter stays in its wait queue after its client has left",
			Change{"redlock/wait/waiters.go", "\tw.removeLocked()\n\te := l.edges[w]\n",
				"\tif w.over = true; !pool.Broken(\"left\") {\n\t\tw.removeLocked()\n\t}\n\te := l.edges[w]\n"}).in("waits-3"),
		patched("left-grant", "a grant whose waiter has left is kept",
			Change{"redlock/wait/waitqueue.go", "\tcase err == nil:\n\t\tw.list.leases.Undelivered(g)",
				"\tcase err == nil && !pool.Broken(\"left-grant\"):\n\t\tw.list.leases.Undelivered(g)"}).in("alone-3"),
		patched("hinted", "a release during the head's ballot is lost",
			Change{"redlock/wait/waitqueue.go", "\t\twq.hinted = true\n", "\t\twq.hinted = !pool.Broken(\"hinted\")\n"}).in("alone-3"),
		patched("expiry-timer", "no waiter is woken when the copies of a quorum have expired",
			Change{"redlock/wait/waitqueue.go", "\tfree := ln.freeAtLocked(now)\n",
				"\tfree := ln.freeAtLocked(now)\n\tif pool.Broken(\"expiry-timer\") && free > now {\n\t\tfree = forever\n\t}\n"}).in("waits-3"),
		patched("poll", "a lost announcement of a changed key is never made up for",
			Change{"redlock/wait/waitqueue.go", "\t\tpoll = pollWatched\n",
				"\t\tif poll = pollWatched; pool.Broken(\"poll\") {\n\t\t\tpoll = forever / 2\n\t\t}\n"}).in("mute-3"),
		patched("arrival", "a wait queue is served from its end",
			Change{"redlock/wait/waitlist.go", "\tafter := wq.tail\n", "\tafter := wq.tail\n\tif pool.Broken(\"arrival\") && !wq.fair {\n\t\tafter = wq.head\n\t}\n"}).in("crowd-3"),
		patched("undecided", "a wait ends when the masters cannot decide for a moment",
			Change{"redlock/wait/waitqueue.go", "(errors.Is(err, engine.ErrHeld) || IsUndecided(err)) && l.", "(errors.Is(err, engine.ErrHeld) || IsUndecided(err) && !pool.Broken(\"undecided\")) && l."}).in("blanks-3"),
		patched("wait-clock", "a wait ends by the masters' clocks",
			Change{"redlock/wait/waitlist.go", "\tpending     bool             // its", "\tstarted     int64\n\tpending     bool             // its"},
			Change{"redlock/wait/waiters.go", "\tq.count.Add(1)\n", "\tq.count.Add(1)\n\tw.started = q.engine.Pool.Group(w.request.DB).Time()\n"},
			Change{"redlock/wait/waitqueue.go", "l.engine.Clock.Now() < w.end", "l.engine.Clock.Now() < w.end && !(pool.Broken(\"wait-clock\") && wq.group.Time()-w.started > w.request.Wait.Microseconds())"}).in("waitzones-3"),
		patched("level-waits", "an owner waits behind the clients that wait for its own lock",
			Change{"redlock/wait/waiters.go", "r.Token == \"\" && lease.LevelOwner(r.Mode) == \"\" {", "r.Token == \"\" && (lease.LevelOwner(r.Mode) == \"\" || pool.Broken(\"level-waits\")) {"}).in("waits-3"),
		patched("time-over", "the end of a wait is missed while others are before it",
			Change{"redlock/wait/waiters.go", "if w.over || contends && w.queue.work {", "if w.over || contends && w.queue.work || w.queue != nil && w.queue.head != w && pool.Broken(\"time-over\") {"}).in("waits-3"),
	}
}

// brokenTurns: rows of what keeps some clients from passing others for ever.
func brokenTurns() []Mutant {
	return []Mutant{
		patched("turn-look", "a hand-over does not look at the queue of FAIR",
			Change{"redlock/wait/waitqueue.go", "wq.reads || wq.contested), place)\n", "wq.reads || wq.contested && !pool.Broken(\"turn-look\")), place)\n"}).in("turns-3"),
		patched("turn-ticket", "a waiter that others have passed takes no ticket",
			Change{"redlock/wait/turn.go", "!wq.passed.enough(l.engine.Clock.Now()) {", "(!wq.passed.enough(l.engine.Clock.Now()) || pool.Broken(\"turn-ticket\")) {"}).in("turns-3"),
		patched("turn-place", "a client that polls has no place",
			Change{"redlock/wait/places.go", "\tif p.over || err != nil {\n", "\tif p.over || err != nil || pool.Broken(\"turn-place\") {\n"}).in("turns-3"),
		patched("turn-window", "a busy key is never left free",
			Change{"redlock/wait/window.go", "now-ln.busy.since >= busyInterval {", "now-ln.busy.since >= busyInterval && !pool.Broken(\"turn-window\") {"}).in("windows-3"),
	}
}

// brokenMaxHolds: rows of the longest time of a hold.
func brokenMaxHolds() []Mutant {
	return []Mutant{
		patched("longest-extends", "a lock is extended past its longest time",
			Change{"redlock/maxhold/maxhold.go", "\tif left < minLeft || r.TTL > left && (r.Whole || r.Exact) {", "\tif pool.Broken(\"longest-extends\") {\n\t\tleft = r.TTL\n\t}\n\tif left < minLeft || r.TTL > left && (r.Whole || r.Exact) {"}).in("longest-3"),
		patched("longest-chosen", "the deadline of a token that the client chose is not looked for",
			Change{"redlock/maxhold/maxhold.go", "\t\tat := earliest(deadlines)\n", "\t\tat := earliest(deadlines)\n\t\tif pool.Broken(\"longest-chosen\") {\n\t\t\tat = 0\n\t\t}\n"}).in("longest-3"),
		patched("longest-again", "a lock that is requested once more begins anew",
			Change{"redlock/maxhold/held.go", "\t\t\tm.stillHeld(r.DB, keys, held, deadlines, 0, done)\n", "\t\t\tif pool.Broken(\"longest-again\") {\n\t\t\t\tdeadlines = nil\n\t\t\t}\n\t\t\tm.stillHeld(r.DB, keys, held, deadlines, 0, done)\n"}).in("longest-3"),
	}
}

// brokenHolds: rows of leases that are renewed.
func brokenHolds() []Mutant {
	return []Mutant{
		patched("renew-released", "a lease is renewed after its release",
			Change{"redlock/renew/hold.go", "\th := hs.byID[id]\n\tif h != nil {", "\th := hs.byID[id]\n\tif h != nil && !pool.Broken(\"renew-released\") {"}).in("holds-3"),
		patched("renew-max", "a lease is renewed past its longest time",
			Change{"redlock/renew/renewals.go", "\tif due >= h.stop {", "\tif due >= h.stop && !pool.Broken(\"renew-max\") {"}).in("holds-3"),
		patched("renew-lost", "a lease that a quorum has lost is renewed further",
			Change{"redlock/renew/renewals.go", "\t\ts.endLocked(h)\n\t\ts.mu.Unlock()\n\t\th.onLost(ErrLostHeld)\n\t\treturn\n",
				"\t\tif pool.Broken(\"renew-lost\") {\n\t\t\th.until = now + h.grant.TTL()\n\t\t\ts.scheduleLocked(h, now+h.grant.TTL()/3)\n\t\t\tbreak\n\t\t}\n\t\ts.endLocked(h)\n\t\ts.mu.Unlock()\n\t\th.onLost(ErrLostHeld)\n\t\treturn\n"}).in("wiped-3"),
		patched("suspended", "the end of a lease while the machine was suspended is noticed by the timer that was set before",
			Change{"redlock/renew/renewals.go", "\tdelay := min(max(first-now, 0), maxSleep)\n", "\tdelay := min(max(first-now, 0), maxSleep)\n\tif pool.Broken(\"suspended\") {\n\t\tdelay = max(first-now, 0)\n\t}\n"}).in("waitjumps-3"),
		patched("renewing", "a lease does not end while its renewal is under way",
			Change{"redlock/renew/renewals.go", "\t\t\ths.queueLocked(h, h.until) // no", "\t\t\ths.queueLocked(h, h.until)\n\t\t\tif pool.Broken(\"renewing\") {\n\t\t\t\th.due = forever\n\t\t\t\theap.Fix(&hs.queue, h.index)\n\t\t\t}\n\t\t\t// no"}).in("holds-3"),
		patched("lost-late", "a lease that could not be renewed is given back, with what an extension promised",
			Change{"redlock/renew/hold.go", "\th.terms.OnEnd(h.grant, reason, h.grant.Linger())\n", "\tif pool.Broken(\"lost-late\") {\n\t\ts.leases.GiveUp(&h.grant)\n\t}\n\th.terms.OnEnd(h.grant, reason, h.grant.Linger())\n"}).in("holds-3"),
		patched("paused", "a lease is renewed although its validity is over",
			Change{"redlock/renew/renewals.go", "\t\tcase now >= h.until: //", "\t\tcase now >= h.until && !pool.Broken(\"paused\"): //"}).in("holds-3"),
		patched("wanted-next", "a request to let go is passed to the client that holds the key when the list is read",
			Change{"redlock/renew/wantedlist.go", "!strings.Contains(r.names, ", "!pool.Broken(\"wanted-next\") && !strings.Contains(r.names, "}).in("holds-3").
			but("a request changes nothing of a lock, so no promise is broken; TestRevoke_TheNextHolderIsNotAsked is a directed test"),
		patched("wanted-unread", "a daemon does not read what clients of others request of its holders",
			Change{"redlock/renew/wantedlist.go", "\tl.notify(requests, answers)\n", "\tif !pool.Broken(\"wanted-unread\") {\n\t\tl.notify(requests, answers)\n\t}\n"}).in("holds-3").
			but("a request changes nothing of a lock, so no promise is broken; TestRevoke_ReachesTheHoldersOfAnotherDaemon is a directed test"),
	}
}

// brokenQueues: rows of the queues of FAIR.
func brokenQueues() []Mutant {
	const dir = "redlock/scripts/"
	return []Mutant{
		patched("tail", "a ticket may be taken that is below another's",
			Change{dir + "enlist.lua", "if last[2] and tonumber(last[2]) >= ticket then return {2, last[2]} end", ""}).in("askew-3"),
		patched("fair-look", "a request with FAIR that does not wait does not look at the queue",
			Change{dir + "queue.lua", "return ticket == '' or tonumber(first[2]) < tonumber(ticket)",
				"return ticket ~= '' and tonumber(first[2]) < tonumber(ticket)"}).in("fair-3"),
		patched("fair-unasked", "a script of a request without FAIR does not look at the queue",
			Change{"redlock/lease/queuecheck.go", "\treturn queueCheck{keys: a.", "\tif ticketOf(a.call.request.Mode) == nil && pool.Broken(\"fair-unasked\") {\n\t\treturn queueCheck{}\n\t}\n\treturn queueCheck{keys: a."},
			Change{"redlock/lease/queuecheck.go", "\treturn a.call.request.Token == \"\" &&", "\treturn !pool.Broken(\"fair-unasked\") && a.call.request.Token == \"\" &&"}).in("unasked-3"),
		patched("fair-first", "a waiter in the FAIR queue ignores the waiters before it",
			Change{dir + "fair.lua", "  if precedes(", "  if ARGV[#ARGV - 3] == '' and precedes("}).in("queue-3"),
		patched("refresh-left", "a waiter that has left a FAIR queue is refreshed in it once more",
			Change{"redlock/wait/waitlist.go", " pool.Timer // of FAIR, see refreshTickets\n", " pool.Timer // of FAIR, see refreshTickets\n\tpast, present []*lease.Ticket\n"},
			Change{"redlock/wait/fair.go", "\tagain := wq.refreshesLocked()\n",
				"\tif wq.past, wq.present = wq.present, nil; pool.Broken(\"refresh-left\") {\n\t\tfor w := wq.head; w != nil; w = w.next {\n\t\t\twq.present = append(wq.present, w.ticket)\n\t\t}\n\t}\n\tagain := wq.refreshesLocked()\n"},
			Change{"redlock/wait/fair.go", "\treturn kept > 0\n", "\tfor _, stand := range wq.past {\n\t\tc.Args = append(c.Args, stand.ID, strconv.FormatInt(stand.Number, 10), engine.Flag(true))\n\t\tkept++\n\t}\n\treturn kept > 0\n"}).in("fair-3"),
		patched("refresh-none", "no waiter is refreshed in a FAIR queue",
			Change{"redlock/wait/fair.go", "\twq.refreshTimer.Reset(refreshInterval)\n", "\tif wq.refreshTimer.Reset(refreshInterval); pool.Broken(\"refresh-none\") {\n\t\tl.mu.Unlock()\n\t\treturn\n\t}\n"}).in("fair-3"),
		patched("dequeue", "a waiter that has left stays in the FAIR queue until its ticket expires",
			Change{"redlock/wait/fair.go", "\tif r.Mode = lease.Enqueued(r.Mode, w.ticket); w.ticket != nil {\n", "\tif r.Mode = lease.Enqueued(r.Mode, w.ticket); w.ticket != nil && !pool.Broken(\"dequeue\") {\n"}).in("fair-3"),
		patched("dead", "expired tickets stay in a FAIR queue",
			Change{dir + "queue.lua", "for _, one in ipairs(dead) do", "for _, one in ipairs({}) do"}).in("queue-3"),
	}
}
