package mutants

// table.go: the table of all mutants, and rows of locks, ids and work.

import "slices"

// All is the table. A row that no longer applies fails loudly: adapt it to the
// code as it is now.
func All() []Mutant {
	return slices.Concat(Rules(), brokenLanes(), brokenWindows(), brokenLocks(), brokenScripts(), brokenWaits(), brokenTurns(), brokenMaxHolds(), brokenHolds(), brokenQueues(), brokenDropIn(),
		brokenReaders(), brokenPermits(), brokenOrder(), brokenCycles(), brokenEnds(), brokenChanges())
}

// brokenLanes: rows of patches of pool.
func brokenLanes() []Mutant {
	return []Mutant{
		patched("quorum", "half of the masters are enough",
			Change{"pool/options.go", "func Quorum(n int) int { return n/2 + 1 }",
				"func Quorum(n int) int {\n\tif Broken(\"quorum\") {\n\t\treturn n / 2\n\t}\n\treturn n/2 + 1\n}"}),
		patched("scripts-lost", "a request whose script the master has lost fails",
			Change{"pool/flush.go", "!f.loads && refusal", "!f.loads && !Broken(\"scripts-lost\") && refusal"}).in("unscripted-3"),
		patched("twice", "one master is counted twice",
			Change{"pool/exchange.go", "\t\tdo(op, a)\n", "\t\tdo(op, a)\n\t\tif Broken(\"twice\") && seal.Good {\n\t\t\tdo(op, a)\n\t\t}\n"}),
		patched("kill", "the predecessor of a connection is not ended",
			Change{"pool/handshake.go", "if id == 0 || run != f.RunID {", "if id == 0 || run != f.RunID || Broken(\"kill\") {"}).in("orphans-3"),
		patched("step-offline", "a clock step between two connections goes unnoticed",
			Change{"pool/handshake.go", "if l.est.Known && l.incarnation != nil {", "if l.est.Known && l.incarnation != nil && !Broken(\"step-offline\") {"}),
		patched("step-all", "every step of a master's clock is tolerated",
			Change{"pool/masterclock.go", "return left, left >= 0,", "return left, left >= 0 || Broken(\"step-all\"),"},
			Change{"pool/masterclock.go", "return ahead, ahead > max(", "return ahead, !Broken(\"step-all\") && ahead > max("}).in("ripples-3"),
		patched("step-unwatched", "a daemon tolerates a step without having observed the clock",
			Change{"pool/gain.go", "debt := max(0, budget)", "debt := unlessBroken(\"step-unwatched\", max(0, budget))"},
			Change{"pool/gain.go", "// gain is guarded", "func unlessBroken(rule string, n int64) int64 {\n\tif Broken(rule) {\n\t\treturn 0\n\t}\n\treturn n\n}\n\n// gain is guarded"}).in("ripples-3"),
		patched("step-last", "only the last tolerated step counts",
			Change{"pool/masterclock.go", "\tm.gain.observe(s.sent, s.received, s.time)\n\tm.anomaly = nil\n",
				"\tm.gain.observe(s.sent, s.received, s.time)\n\tif Broken(\"step-last\") {\n\t\tm.gain.restart(s.received, s.time-clock.Micros(s.sent), 0)\n\t}\n\tm.anomaly = nil\n"}).in("ripples-3"),
		patched("step-creep", "small steps of a clock are followed without a limit",
			Change{"pool/verify.go", "\tcase err == nil && l.creptLocked(now, us):\n", "\tcase err == nil && !Broken(\"step-creep\") && l.creptLocked(now, us):\n"}).in("creep-3").
			but("a clock must creep beyond the budget while a lease rests on a bare quorum; not seen in 25 million executions. TestSteps_ASumBeyondTheBudgetInvalidates is a directed test"),
		patched("rolled-back", "a register below what was acknowledged is nothing special",
			Change{"pool/handshake.go", "a.Score >= least", "(Broken(\"rolled-back\") || a.Score >= least)"},
			Change{"pool/flush.go", "old < f.minRegister {", "!Broken(\"rolled-back\") && old < f.minRegister {"}),
		patched("evicted-late", "an eviction that a late flush has read is not noticed",
			Change{"pool/verify.go", " // the next reading comes after the next votes\n", "\n\t\tif evicted != nil && Broken(\"evicted-late\") {\n\t\t\tevicted = nil\n\t\t}\n"}).in("evicting-3"),
		patched("evicted-look", "a master that has evicted keys goes on in its incarnation",
			Change{"pool/readings.go", "if f.settingsAt < 0 {\n\t\treturn nil\n\t}\n\tpolicy,", "if f.settingsAt < 0 || Broken(\"evicted-look\") {\n\t\treturn nil\n\t}\n\tpolicy,"}).in("evicting-3"),
		patched("no-records", "masters remember nothing of each other's registers",
			Change{"pool/records.go", "if other != p {", "if other != p && !Broken(\"no-records\") {"}).in("backups-3"),
	}
}

// brokenLocks: rows of patches of redlock.
func brokenLocks() []Mutant {
	return []Mutant{
		patched("delay", "copies do not outlast the validity by the DELAY",
			Change{"redlock/lease/acquire.go", "\tend = quorum.Expiry(m.Time, request.lasts(), ", "\tlasts := request.lasts()\n\tif pool.Broken(\"delay\") {\n\t\tlasts = request.TTL\n\t}\n\tend = quorum.Expiry(m.Time, lasts, "}).in("delays-3"),
		patched("delay-extended", "an extension drops the DELAY",
			Change{"redlock/lease/extend.go", "\te.linger = max(min(e.linger, l.engine.MaxTTL-r.TTL), 0)\n", "\te.linger = max(min(e.linger, l.engine.MaxTTL-r.TTL), 0)\n\tif pool.Broken(\"delay-extended\") {\n\t\te.linger = 0\n\t}\n"}).in("delays-3"),
		patched("delay-named", "an extension does not heed the DELAY that it names",
			Change{"redlock/lease/extend.go", "e.start, e.linger = l, l.engine.Pool.Group(r.DB), r, now, r.Linger\n", "e.start, e.linger = l, l.engine.Pool.Group(r.DB), r, now, r.Linger\n\tif pool.Broken(\"delay-named\") {\n\t\te.linger = 0\n\t}\n"}).in("delays-3"),
		patched("keep", "a release with KEEP deletes",
			Change{"redlock/lease/release.go", "\tif r.linger > 0 {\n\t\tc.Set(", "\tif r.linger > 0 && !pool.Broken(\"keep\") {\n\t\tc.Set("}).in("delays-3"),
		patched("elapsed", "validity ignores what was spent",
			Change{"redlock/engine/term.go", "until: quorum.Deadline(start, ttl)", "until: quorum.Deadline(quorum.Spent(start, e.Recent()), ttl)"},
			Change{"redlock/quorum/validity.go", "// Expiries are in", "func Spent(start, now time.Duration) time.Duration {\n\tif pool.Broken(\"elapsed\") {\n\t\treturn now\n\t}\n\treturn start\n}\n\n// Expiries are in"}),
		patched("rest", "an early decision cancels commands that were not sent yet",
			Change{"redlock/lease/acquire.go", "if m.Now >= quorum.Deadline(a.start, request.TTL) {",
				"if m.Now >= quorum.Deadline(a.start, request.TTL) || a.ballot.Over() && pool.Broken(\"rest\") {"}),
		patched("margin", "copies end with the lease, not a master timeout later",
			Change{"redlock/quorum/validity.go", "\tend := now/1000 + (ttl + late).Milliseconds() + 1",
				"\tif pool.Broken(\"margin\") {\n\t\tlate = 0\n\t}\n\tend := now/1000 + (ttl + late).Milliseconds() + 1"}),
		patched("repair-lapsed", "a copy is repaired after the lease was released",
			Change{"redlock/lease/extend.go", "\tif !ok || m.Now >= until {",
				"\tif pool.Broken(\"repair-lapsed\") {\n\t\tuntil = m.Now + e.request.TTL\n\t} else if !ok || m.Now >= until {"}).in("repairs-3"),
		patched("revive", "a daemon extends past a known deadline",
			Change{"redlock/lease/extend.go", "if known.until <= now && now < known.gone {",
				"if known.until <= now && now < known.gone && !pool.Broken(\"revive\") {"}).
			but("an extension counts copies that a quorum still holds, so another client can come in between only while copies have ended by some masters' clocks and not by others; not seen in 50 million executions"),
		patched("token-queue", "a token's calls do not wait for one another",
			Change{"redlock/lease/tokenqueue.go", "case busy:", "case busy && !pool.Broken(\"token-queue\"):"}).in("regrets-3"),
		patched("false-one", "one copy is enough for the answer 1",
			Change{"redlock/lease/release.go", "case r.valid && t.Yes > 0:", "case (r.valid || pool.Broken(\"false-one\")) && t.Yes > 0:"}).in("stragglers-3"),
		patched("prefetch", "ids are served from what an earlier round left over",
			Change{"redlock/ids/nextid.go", "\tr.lo++\n\tr.announce", "\tr.lo++\n\tif pool.Broken(\"prefetch\") && len(r.callers) > 0 {\n\t\tr.hi += 8\n\t}\n\tr.announce"},
			Change{"redlock/ids/nextid.go", "\tc.mu.Lock()\n\tc.waiting = append(c.waiting, idCaller{", "\tc.mu.Lock()\n\tif first := c.spare; pool.Broken(\"prefetch\") && first > 0 && first+r.Count-1 <= c.highest {\n\t\tc.spare += r.Count\n\t\tc.mu.Unlock()\n\t\tis.engine.Leave()\n\t\tdone(first, nil)\n\t\treturn\n\t}\n\tc.waiting = append(c.waiting, idCaller{"},
			Change{"redlock/ids/nextid.go", "\tc.ids.engine.Counts.IDs.Add(first - r.lo)", "\tc.spare = first\n\tc.ids.engine.Counts.IDs.Add(first - r.lo)"},
			Change{"redlock/ids/counters.go", "\trunning bool\n", "\trunning bool\n\tspare   int64\n"}),
		patched("work-age", "a master that forgot ends of work votes on work",
			Change{"redlock/work/acquire.go", "oldEnough := !seal.Quarantined && (", "oldEnough := !seal.Quarantined && (pool.Broken(\"work-age\") || "}),
		patched("adopt", "a counter adopts ids that are older than its memory",
			Change{"redlock/ids/nextid.go", "if counter.since > m.ConnectedAt+idRoundTime+idRoundMargin {", "if counter.since > m.ConnectedAt+idRoundTime+idRoundMargin || pool.Broken(\"adopt\") {"}),
		patched("delete-unconfirmed", "a counter is deleted whose value is above the confirmed one",
			Change{"redlock/ids/delete.go", "case !there || highest != d.confirm:", "case !there || highest != d.confirm && !pool.Broken(\"delete-unconfirmed\"):"}).in("deletions-3"),
		patched("delete-early", "a deletion is answered while rounds may count votes that it deleted",
			Change{"redlock/ids/delete.go", "	e.Clock.AfterFunc(wait, func() {", "	if pool.Broken(\"delete-early\") {\n\t\twait = 0\n\t}\n	e.Clock.AfterFunc(wait, func() {"}).in("deletions-3"),
	}
}

// brokenScripts: rows of patches of the masters' scripts.
func brokenScripts() []Mutant {
	const dir = "redlock/scripts/"
	return []Mutant{
		patched("owner", "a release does not look at the owner",
			Change{dir + "release.lua", "if holder == token and ARGV[2] == '' and not ARGV[5] then", "if type(holder) == 'string' and ARGV[2] == '' and not ARGV[5] then"}),
		patched("re-create", "an extension re-creates what has lapsed",
			Change{dir + "extend.lua", "  if kind == 'zset' then\n    local score",
				"  if kind == 'none' then\n    redis.call('SET', lock, token, 'PXAT', digits(E))\n    return 1\n  end\n  if kind == 'zset' then\n    local score"}),
		patched("mark", "what prolongs a copy leaves it in reach of an undo",
			Change{dir + "shape.lua", "return new + (4 - new) % 8", "return new"}),
		patched("doubles", "ids are compared as floating point",
			Change{dir + "nextid.lua", "  if #a ~= #b then return #a < #b end\n  return a < b", "  return tonumber(a) < tonumber(b)"}).in("calm-3"),
		patched("delete-blind", "a counter is deleted although it changed since it was shown",
			Change{dir + "deleteid.lua", "(stored or '') ~= ARGV[4] or now", "now"}).in("deletions-3"),
		patched("delete-late", "a deletion is executed however late it arrives",
			Change{dir + "deleteid.lua", " or now > tonumber(ARGV[3]) then", " then"}).in("deletions-3").
			but("simulated masters stand still for half a second at most, and a deletion that is two seconds late must meet a later counter of the same value on the same master; TestDeleteCounter_OnAMasterThatStoodStillDeletesNothing is a directed test"),
		patched("orphan", "an attempt that was not granted counts as a record of the work",
			Change{dir + "worktry.lua", "local unknown = not state or h[5] == '1'", "local unknown = not state"}).in("jobs-3"),
		patched("old-record", "a record of work that came back with an older file counts as knowledge",
			Change{dir + "worktry.lua", " or h[6] ~= ARGV[8]", ""}).in("rollbacks-3"),
		patched("unfenced-end", "a superseded attempt may end the work",
			Change{dir + "workend.lua", "if attempt > ended or (attempt == ended and owner ~= ARGV[1]) then return 0 end", ""},
			Change{dir + "workend.lua", "if attempt < ended and began(owner) > began(ARGV[1]) then return 0 end", ""}),
		patched("believes-end", "masters that may have forgotten the successor accept the end of a superseded attempt",
			Change{"redlock/work/finish.go", "case code == 1 && a.Seal.Good && !w.remembers(a.Seal):", "case code == 1 && a.Seal.Good && !w.remembers(a.Seal) && !pool.Broken(\"believes-end\"):"}).in("overdue-3"),
		patched("done-once", "the end of a work is forgotten when it is read",
			Change{dir + "worktry.lua", "if state == 'D' then return", "if state == 'D' then redis.call('DEL', work) return"}),
		patched("attempt-taken", "an attempt number may be given again",
			Change{dir + "worktry.lua", "if attempt >= tonumber(ARGV[2]) then return {5, attempt} end", ""}),
		patched("attempt-max", "there is an attempt after the last one",
			Change{dir + "worktry.lua", "if attempt >= tonumber(ARGV[3]) then return {4, attempt} end", ""},
			Change{"redlock/work/acquire.go", "\tnumber := min(max(w.attempt, w.taken+1), c.request.Max)\n", "\tnumber := min(max(w.attempt, w.taken+1), c.request.Max)\n\tif pool.Broken(\"attempt-max\") {\n\t\tnumber = max(w.attempt, w.taken+1)\n\t}\n"}).in("overdue-3"),
		patched("extend-superseded", "a superseded attempt may prolong the lease of its successor",
			Change{dir + "workextend.lua", "if state ~= 'R' or owner ~= ARGV[1] or ends < now then", "if state ~= 'R' or ends < now then"}).in("overdue-3"),
		patched("result-any", "a superseded attempt leaves its result although its end is refused",
			Change{dir + "workend.lua", "local ended = tonumber(ARGV[2])\n", "local ended = tonumber(ARGV[2])\nif state and ARGV[7] then redis.call('HSET', work, 'r', ARGV[7]) end\n"}).in("overdue-3"),
		patched("promoted", "a promoted replica is admitted",
			Change{"pool/admission/admit.lua", "if offset ~= '-1' then return {'PROMOTED', tostring(offset)} end", ""}).in("promotion-3"),
		patched("evicted", "an admission does not compare how many keys were evicted",
			Change{"pool/admission/admit.lua", "'evicted_keys:(%d+)')", "'evicted_keys:(%d+)') and '0'"}).in("evicted-3"),
		patched("durable-then", "a memory counts that was not durable before",
			Change{"pool/admission/admit.lua", "(durable == '1' and ARGV[3] == '1')", "ARGV[3] == '1'"}).in("awakened-3"),
	}
}
