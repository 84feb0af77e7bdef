package mutants

// mode.go: the rows of the mutants of the modes, of cycles of waits
// and of the end of waits.

const scripts = "redlock/scripts/"

// brokenReaders: rows of readers and their writer.
func brokenReaders() []Mutant {
	return []Mutant{
		patched("read-written", "a reader comes in beside another's writer",
			Change{scripts + "reader.lua", "    if redis.call('GET', lock) ~= token then return 0 end\n", ""}).in("readers-3"),
		patched("write-read", "a reader becomes the writer beside other readers",
			Change{scripts + "acquire.lua", "if readers > 1 or (readers == 1 and not score) then", "if readers == 1 and not score then"}).in("contest-3"),
		patched("reader-ends", "the key ends with the newest reader, not with the last one to expire",
			Change{scripts + "reader.lua", "if not last or ends > last then endAt", "if true then endAt"}).in("readers-3"),
		patched("told-no", "a writer that was downgraded on some masters is answered nil",
			Change{"redlock/lease/shared.go", "\tif f.downgrade.begun.Load() {\n", "\tif f.downgrade.begun.Load() && !pool.Broken(\"told-no\") {\n"}).in("eager-5"),
		patched("reader-leaves", "a reader's release takes all readers",
			Change{scripts + "forcerelease.lua", "it.gone[#it.gone + 1] = token", "redis.call('DEL', lock)"}).in("readers-3"),
		patched("upgrade-ends", "the writer's copy ends before the copy of its former read lease",
			Change{scripts + "shape.lua", "local ends = math.max(score, E)\n", "local ends = E\n"}).in("turning-3"),
		patched("downgrade-any", "a late ballot downgrades a later writer",
			Change{scripts + "reader.lua", "    if had ~= writer then return {0, had} end\n", ""}).in("eager-3"),
		patched("downgrade-late", "a master that shows the writer only after the reply to the reader downgrades it",
			Change{"redlock/lease/shared.go", "ends > 0 && !a.ballot.Over() {", "ends > 0 && (!a.ballot.Over() || pool.Broken(\"downgrade-late\")) {"}).in("contest-3"),
		patched("downgrade-first", "a downgrade deletes the writer before the reader can be written",
			Change{scripts + "reader.lua", "    local refusal = refusesReaders(lock)\n    if refusal then return refusal end\n", ""}).in("denials-3"),
		patched("deletes-first", "the undo of an upgrade deletes the writer before it is certain that the reader can be written",
			Change{scripts + "unupgrade.lua", "local refusal = refusesReaders(lock)\nif refusal then return refusal end\n", ""}).in("denials-3"),
		patched("unupgrade", "the undo of an upgrade does not look whose writer stands there",
			Change{scripts + "unupgrade.lua", "if off ~= 0 and off ~= 1 then return 0 end", ""}).in("eager-3"),
	}
}

// brokenPermits: rows of counted holders, and of several keys.
func brokenPermits() []Mutant {
	return []Mutant{
		patched("permit-taken", "a permit is given twice",
			Change{scripts + "slot.lua", "ends, holder = permit(redis.call('HGET', lock, slot), now)\n", "ends, holder = nil, nil\n"}).in("permits-3"),
		patched("permit-ends", "the key ends with the permit that was given last",
			Change{scripts + "slot.lua", "if last and new > last then endAt", "if last then endAt"}).in("permits-3"),
		patched("permit-leaves", "a permit's release takes all permits",
			Change{scripts + "forcerelease.lua", "it.gone[#it.gone + 1] = all[i]", "redis.call('DEL', lock)"}).in("permits-3"),
		patched("permit-slot", "the undo of a permit does not look at the slot, nor when it ends",
			Change{scripts + "forcerelease.lua", "  for _, i in ipairs(where[token] or {}) do\n    if all[i] ~= 'n' and (not slot or slot == all[i]) then\n",
				"  local every = {}\n  for i = 1, #all, 2 do every[#every + 1] = i end\n  for _, i in ipairs(slot and every or where[token] or {}) do\n    if all[i] ~= 'n' then\n"},
			Change{scripts + "forcerelease.lua", "if holder == token and not spared(ends) then", "if holder then"}).in("permits-3"),
		patched("multi-some", "of several keys only the first one is looked at",
			Change{scripts + "multi.lua", "  elseif kind ~= 'none' then\n", "  elseif kind ~= 'none' and i == 1 then\n"},
			Change{scripts + "acquires.lua", "if kind ~= 'none' and (kind", "if kind ~= 'none' and i == from and (kind"}).in("blind-3"),
		patched("multi-undo", "of several keys only the first one is given back by a failed attempt",
			Change{"redlock/lease/multi.go", "\tfor _, key := range a.rest {\n\t\ta.undo(lane, c, key)\n", "\tfor _, key := range a.rest {\n\t\tif pool.Broken(\"multi-undo\") {\n\t\t\tbreak\n\t\t}\n\t\ta.undo(lane, c, key)\n"}).in("pairs-3"),
		patched("multi-hold", "of several keys only the first one is given back when their holder goes",
			Change{"redlock/lease/lease.go", "\tfor _, id := range g.Leases() {\n\t\tl.engine.EnterAlways()\n",
				"\tfor i, id := range g.Leases() {\n\t\tif i > 0 && pool.Broken(\"multi-hold\") {\n\t\t\tbreak\n\t\t}\n\t\tl.engine.EnterAlways()\n"}).in("waits-3"),
		patched("multi-extend", "of several keys one that is another's is prolonged, too",
			Change{scripts + "multiextend.lua", "if kind == 'string' and redis.call('GET', lock) == token then", "if kind == 'string' and (i > 1 or redis.call('GET', lock) == token) then"}).in("torn-3"),
	}
}

// brokenOrder: rows of the order of FAIR.
func brokenOrder() []Mutant {
	const look, behind = "  if precedes(", "ARGV[#ARGV - 2]) and not holds(lock, ARGV[1]) then"
	return []Mutant{
		patched("barging", "a request with FAIR does not look at the queue",
			Change{scripts + "fair.lua", look, "  if false and precedes("},
			Change{scripts + "acquires.lua", "    if precedes(", "    if false and precedes("}).in("fair-3"),
		patched("barging-readers", "a writer waits for the writers before it, not for readers",
			Change{scripts + "queue.lua", "writes == '1' and queue or writers", "writers"}).in("fair-3"),
		patched("own-lease", "the holder's repeated request waits behind its own waiters",
			Change{scripts + "fair.lua", behind, "ARGV[#ARGV - 2]) then"}).in("chosen-3"),
		patched("own-permit", "the holder of a permit that repeats its request waits behind its own waiters",
			Change{scripts + "queue.lua", "  if permitted(lock, token) then return true end\n", ""}).in("regulars-3"),
		patched("fair-permits", "a request for a permit does not look at the queue",
			Change{"redlock/lease/permits.go", "\treturn &permitMode{queueCheck: newQueueCheck(a), ", "\tq := newQueueCheck(a)\n\tif pool.Broken(\"fair-permits\") {\n\t\tq = queueCheck{}\n\t}\n\treturn &permitMode{queueCheck: q, "},
			Change{"redlock/lease/permits.go", "\tif !isFresh(a) {\n", "\tif !isFresh(a) || pool.Broken(\"fair-permits\") {\n"}).in("seats-3"),
		patched("place-lost", "a refresh does not give a waiter the place back that a master has lost",
			Change{scripts + "enlist.lua", "  for a = 3, #ARGV, 3 do\n    redis.call('ZADD', KEYS[i], 'GT',", "  for a = 3, #ARGV, 3 do\n    redis.call('ZADD', KEYS[i], full and 'GT' or 'XX',"}).in("blanks-3"),
	}
}

// brokenCycles: rows of DEADLOCK.
func brokenCycles() []Mutant {
	return []Mutant{
		patched("cycle-join", "joining a wait queue starts no search for a cycle",
			Change{"redlock/wait/waiters.go", "\tif deadlock := q.cycleLocked(w); deadlock != nil {\n",
				"\tif deadlock := q.cycleLocked(w); deadlock != nil && !pool.Broken(\"cycle-join\") {\n"}).in("cycles-3"),
		patched("cycle-refused", "a refusal starts no search for a cycle",
			Change{"redlock/wait/waitqueue.go", "\t\t\tif deadlock := l.cycleLocked(w); deadlock != nil {\n", "\t\t\tif deadlock := l.cycleLocked(w); deadlock != nil && !pool.Broken(\"cycle-refused\") {\n"}).in("cycles-3"),
		patched("cycle-own", "a reader that upgrades waits for itself",
			Change{"redlock/wait/deadlock.go", "\treturn held.Token != w.request.Token && !together\n", "\treturn (held.Token != w.request.Token || pool.Broken(\"cycle-own\")) && !together\n"}).in("cycles-3"),
		patched("cycle-queue", "the search ignores waiters that are blocked by earlier waiters",
			Change{"redlock/wait/deadlock.go", "\tsteps, own := 0, w.queueID()\n", "\tif pool.Broken(\"cycle-queue\") {\n\t\treturn false\n\t}\n\tsteps, own := 0, w.queueID()\n"}).in("cycles-3"),
		patched("edges-kept", "a wait is answered while the masters still have its edges",
			Change{"redlock/wait/edges.go", "\tif until == 0 { // they", "\tif until == 0 || pool.Broken(\"edges-kept\") { // they"}).in("rings-3"),
		patched("edges-few", "an edge counts that a minority of masters shows",
			Change{"redlock/wait/edges.go", "\t\tif n >= r.ballot.Tally.Quorum {", "\t\tif n >= r.ballot.Tally.Quorum || pool.Broken(\"edges-few\") {"}).in("ringfaults-3"),
		patched("edges-lapsed", "an edge outlasts its lease",
			Change{"redlock/wait/edges.go", "\t\tleft := min(edgeLife, e.leases.Known(one).Until-m.Now)\n",
				"\t\tleft := min(edgeLife, e.leases.Known(one).Until-m.Now)\n\t\tif pool.Broken(\"edges-lapsed\") {\n\t\t\tleft = edgeLife\n\t\t}\n"}).in("cyclefaults-3"),
		patched("edges-slow", "a search counts however long it takes",
			Change{"redlock/wait/waiters.go", "l.engine.Clock.Now()-began > maxSearch {", "l.engine.Clock.Now()-began > maxSearch && !pool.Broken(\"edges-slow\") {"}).in("ringfaults-3"),
		patched("edges-own", "what a reader's own token holds blocks it, too",
			Change{"redlock/wait/edges.go", "case e.id == c.edges.id && r.at > 0:", "case e.id == c.edges.id && (r.at > 0 || pool.Broken(\"edges-own\")):"}).in("rings-3"),
		patched("edges-alone", "no cycle over several daemons is searched for",
			Change{"redlock/wait/edges.go", "\tif r.at+1 < min(", "\tif !pool.Broken(\"edges-alone\") && r.at+1 < min("}).in("rings-3"),
		patched("cycle-over", "leases that have run out count",
			Change{"redlock/lease/lease.go", "\treturn ok && known.until > l.engine.Recent()\n", "\treturn ok && (known.until > l.engine.Recent() || pool.Broken(\"cycle-over\"))\n"}).in("cyclefaults-3"),
	}
}

// brokenEnds: rows of a daemon that ends all waits.
func brokenEnds() []Mutant {
	return []Mutant{
		patched("drain-release", "a daemon that ends releases what is held with HOLD",
			Change{"redlock/renew/hold.go", "\tif !s.draining.Load() {\n", "\tif !s.draining.Load() || pool.Broken(\"drain-release\") {\n"}).in("drain-3"),
		patched("drain-join", "a daemon that ends lets further clients wait",
			Change{"redlock/wait/waiters.go", "\tcase q.closed:\n\t\treturn engine.ErrShutdown\n", "\tcase q.closed && !pool.Broken(\"drain-join\"):\n\t\treturn engine.ErrShutdown\n"}).in("drain-3"),
		patched("drain-way", "a waiter that is just joining the wait queue does not receive SHUTDOWN",
			Change{"redlock/wait/waiters.go", "!w.over && !q.closed:", "!w.over && (!q.closed || pool.Broken(\"drain-way\")):"}).in("drain-3"),
		patched("drain-queue", "waiters whose wait a daemon ends stay in the FAIR queue",
			Change{"redlock/wait/waitqueue.go", "\tw.leaveQueue()\n", "\tif !pool.Broken(\"drain-queue\") || !errors.Is(err, engine.ErrShutdown) {\n\t\tw.leaveQueue()\n\t}\n"}).in("drain-3"),
	}
}
