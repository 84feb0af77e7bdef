package mutants

// rules.go: the rows of the rules that PROOF.md names. The product without a rule must also
// fail the directed test of that rule.

import (
	"fmt"
	"slices"
)

// Rules are the mutants that lack one rule of the argument in PROOF.md.
func Rules() []Mutant {
	return slices.Concat(brokenSeals(), brokenFences(), brokenMemories(), brokenCopies(), brokenModes(), brokenGroups())
}

// brokenSeals: rows of the seal and of what a flush proves.
func brokenSeals() []Mutant {
	const absent = "\tscore := f.replies[f.sealAt]\n"
	return []Mutant{
		patched("seal", "votes count without a good seal",
			Change{"pool/flush.go", absent, absent + "\tif score.Kind == ReplyNil && Broken(\"seal\") {\n\t\tscore = Reply{Kind: ReplyInt}\n\t}\n"},
			Change{"pool/verify.go", "\tif err := f.evicted(&l.commands); err != nil {\n",
				"\tif Broken(\"seal\") {\n\t\treturn c.goodSealLocked(f, old, top, us), nil\n\t}\n\tif err := f.evicted(&l.commands); err != nil {\n"},
			Change{"pool/verify.go", notRaised, believed("seal")}),
		patched("seal-last", "the seal stands in front",
			Change{"pool/flush.go", "\tf.writeOperations()\n", "\tif (f.sealed || f.beat) && Broken(\"seal-last\") {\n\t\tf.seal()\n\t}\n\tf.writeOperations()\n"},
			Change{"pool/flush.go", "\tif f.sealed || f.beat {\n\t\tf.seal()\n", "\tif (f.sealed || f.beat) && !Broken(\"seal-last\") {\n\t\tf.seal()\n"}),
		patched("identity", "the seal compares neither identity nor register",
			Change{"pool/flush.go", absent, absent + "\tif score.Kind == ReplyNil && Broken(\"identity\") {\n\t\tscore = Reply{Kind: ReplyInt}\n\t}\n"},
			Change{"pool/flush.go", "old < f.minRegister {", "!Broken(\"identity\") && old < f.minRegister {"},
			Change{"pool/verify.go", notRaised, believed("identity")}),
		patched("invalidate", "a clock step invalidates nothing",
			Change{"pool/verify.go", stepped, "\tif l.est.Deviation(f.sent, now, us) != 0 && Broken(\"invalidate\") {\n\t\treturn errSuspect\n\t}\n" + stepped}),
		patched("clock", "the seal does not compare the clock",
			Change{"pool/verify.go", stepped, "\tif Broken(\"clock\") {\n\t\treturn nil\n\t}\n" + stepped}),
		patched("xx", "the seal re-creates the identity",
			Change{"pool/flush.go", raised, raised + "\t\tif c := &f.commands[len(f.commands)-1]; Broken(\"xx\") {\n\t\t\tc.Args = append(c.Args[:2], c.Args[3:]...)\n\t\t}\n"},
			Change{"pool/flush.go", absent, absent + "\tif score.Kind == ReplyNil && Broken(\"xx\") {\n\t\tscore = Reply{Kind: ReplyInt}\n\t}\n"},
			Change{"pool/flush.go", "old < f.minRegister {", "!Broken(\"xx\") && old < f.minRegister {"}),
		patched("late", "late answers count",
			Change{"pool/masterclock.go", "\tcase us > expected+clock.Micros(limit):\n",
				"\tcase us > expected+clock.Micros(limit) && !Broken(\"late\"):\n"}).
			but("the clock check is enough: a step that hides in the time of an answer is at most as long as that time, so the next holder of a copy that ended early receives its grant only when that copy's lease is over"),
		patched("read-late", "a flush that was read late counts however late the master executed it",
			Change{"pool/verify.go", stepped, "\tif now-f.sent > o.MasterTimeout && Broken(\"read-late\") {\n\t\treturn nil\n\t}\n" + stepped}).in("starved-3"),
		patched("raised", "a register counts as raised that another writer kept from it",
			Change{"pool/verify.go", notRaised, believed("raised")}).in("slotsplit-3"),
	}
}

const (
	// stepped is where a seal compares the clock.
	stepped = "\tif l.est.Deviation(f.sent, now, us) != 0 || l.anomaly != nil {\n"
	// notRaised is where a seal asks whether the register was raised.
	notRaised = "\t\tif f.raise > old && raised.Int != 1 {\n"
	// raised is where a seal raises the register.
	raised = "\t\tf.next().Set(\"ZADD\", key, \"XX\", \"GT\", \"CH\", f.context.Decimal(f.raise), identity)\n"
)

// believed has a mutant take every register for raised.
func believed(name string) string {
	return fmt.Sprintf("\t\tif Broken(%q) {\n\t\t\traised.Int = 1\n\t\t}\n", name) + notRaised
}

// brokenFences: rows of fences.
func brokenFences() []Mutant {
	return []Mutant{
		patched("gt", "a register may fall",
			Change{"pool/flush.go", raised, raised + "\t\tif c := &f.commands[len(f.commands)-1]; Broken(\"gt\") {\n\t\t\tc.Args = append(c.Args[:3], c.Args[4:]...)\n\t\t}\n"},
			Change{"pool/flush.go", "old < f.minRegister {", "!Broken(\"gt\") && old < f.minRegister {"},
			Change{"pool/handshake.go", "a.Score >= least", "(Broken(\"gt\") || a.Score >= least)"}),
		patched("low-end", "a fence may lie below the voter's old register",
			Change{"redlock/quorum/fence.go", "\t\tlows[i] = v.Low\n", "\t\tif lows[i] = v.Low; pool.Broken(\"low-end\") {\n\t\t\tlows[i] = 0\n\t\t}\n"},
			Change{"redlock/quorum/fence.go", "return v.Low < fence &&", "return (v.Low < fence || pool.Broken(\"low-end\")) &&"}),
		patched("fence-vote", "masters that refused the lock own fences",
			Change{"redlock/lease/acquire.go", "\tcase v.no && seal.Good:\n", "\tcase v.no && seal.Good:\n\t\tif pool.Broken(\"fence-vote\") {\n\t\t\ta.fencing.Voted(engine.IntervalOf(answer.Lane, seal))\n\t\t}\n"}).in("slow-3"),
		patched("one-seal", "overlapping holders choose fences as if they followed one another",
			Change{"redlock/lease/acquire.go", "if a.fences != nil {\n\t\ta.ballot.Ask", "if a.fences != nil && !pool.Broken(\"one-seal\") {\n\t\ta.ballot.Ask"},
			Change{"redlock/lease/acquire.go", "if a.fences != nil {\n\t\t\ta.fencing", "if a.fences != nil && !pool.Broken(\"one-seal\") {\n\t\t\ta.fencing"},
			Change{"redlock/lease/acquire.go", "v == quorum.Granted && a.fences != nil {", "v == quorum.Granted && a.fences != nil && !pool.Broken(\"one-seal\") {"}).in("permits-3"),
		patched("one-taker", "two acquires of a key count that succeeded in one flush",
			Change{"pool/operation.go", "\tif t == nil {\n", "\tif t == nil || Broken(\"one-taker\") {\n"}).
			but("both succeed only if the key is deleted by hand between the two commands, and then nothing is promised of the first one's lease; that the second one does not count has a directed test, TestFence_OfTwoLocksThatSucceedInOneFlushOneCounts"),
		patched("one-flush", "whatever follows an acquire of its key shares its flush",
			Change{"pool/exchange.go", "ex.conflictsWithEarlier(plan) {", "ex.conflictsWithEarlier(plan) && !Broken(\"one-flush\") {"}).
			but("the second one can succeed only behind the first one's release, which is queued after the first one's answer; by then every seal has been sent whose raise holds the first fence, and the second proposal is above all raises that were sent"),
	}
}

// brokenMemories: rows of masters that may have forgotten, and of one server that stands for two.
func brokenMemories() []Mutant {
	const proves = "engine.CountsAsVote(answer):\n\t\treturn engine.No\n"
	return []Mutant{
		patched("admitted-at", "a durable master that lost acknowledged writes counts once another daemon has raised its register",
			Change{"pool/handshake.go", "lost := run != \"\" &&", "lost := run != \"\" && !Broken(\"admitted-at\") &&"}).in("liar-5").
			but("one daemon must see a master's last writes acknowledged, and another one be the first that returns; seen once in 10⁸ executions. TestIncarnation_OfADurableMasterThatLostAcknowledgedWritesEnds is a directed test"),
		patched("age", "a quarantined master's consent counts",
			Change{"pool/options.go", "if o.RestartGuardOff {", "if o.RestartGuardOff || Broken(\"age\") {"}),
		patched("quarantined-absence", "a quarantined master's \"not held\" counts",
			Change{"redlock/lease/release.go", proves, "answer.Seal.Good && pool.Broken(\"quarantined-absence\"), " + proves}),
		patched("repeat-absence", "\"not held\" counts without a seal",
			Change{"redlock/lease/release.go", proves, "pool.Broken(\"repeat-absence\"), " + proves}),
		patched("trust", "a counter counts in any memory",
			Change{"redlock/ids/nextid.go", "engine.Flag(life.Counters)", "engine.Flag(life.Counters || pool.Broken(\"trust\"))"}),
		patched("claims", "a blank master is any daemon's, whatever configuration the others carry",
			Change{"pool/evidence.go", "\tif n >= Quorum(len(e.masters)) {\n", "\tif n >= Quorum(len(e.masters)) || Broken(\"claims\") {\n"}).in("membership-replace"),
		patched("distinct", "one server counts as two masters",
			// The fingerprint would refuse one server under two names, too.
			Change{"pool/fingerprint.go", "\treturn o.settings(db) +", "\tif Broken(\"distinct\") {\n\t\tname = \"any\"\n\t}\n\treturn o.settings(db) +"},
			Change{"pool/handshake.go", "other.claimedRunID == f.RunID {", "other.claimedRunID == f.RunID && !Broken(\"distinct\") {"}),
	}
}

// brokenCopies: rows of what extends, undoes and releases copies.
func brokenCopies() []Mutant {
	const takeBack, undo = "\tl := a.call.leases\n\ta.sendUndo(", "\ta.undoWithin(lane, c, key, a.token, expiryRange{end - 1, end}, slot...)\n"
	return []Mutant{
		patched("repair", "an absent copy counts as held",
			Change{"redlock/lease/extend.go", "\tcase lacks && counts:\n", "\tcase lacks && counts && pool.Broken(\"repair\"):\n\t\te.copies[answer.Lane] = heldCopy{held: true}\n\t\treturn engine.Neither\n\tcase lacks && counts:\n"}),
		patched("shorten", "an extension may shorten",
			Change{scripts + "shape.lua", "math.max(ends, E)", "E"},
			Change{scripts + "extend.lua", "new > ends", "new ~= ends"}),
		patched("undo-guard", "an undo takes any copy of its token",
			Change{"redlock/lease/undo.go", undo, "\tif pool.Broken(\"undo-guard\") {\n\t\ta.undoWithin(lane, c, key, a.token, expiryRange{0, 2 * end}, slot...)\n\t\treturn\n\t}\n" + undo}),
		patched("undo-all", "an undo skips masters that have not answered",
			Change{"redlock/lease/undo.go", "\tend := a.ends[lane]\n", "\tif c == copyMaybe && pool.Broken(\"undo-all\") {\n\t\treturn\n\t}\n\tend := a.ends[lane]\n"}),
		patched("undo-unlearnt", "an undo by a caller's token goes also where a late answer shows that there is nothing to undo",
			Change{"redlock/lease/late.go", "\tcase !kept:\n", "\tcase !kept && learnt && pool.Broken(\"undo-unlearnt\"):\n\t\ta.giveBackLate(answer.Lane, copyMade)\n\tcase !kept:\n"}).in("stepping-3"),
		patched("undo-once", "an undo by a caller's token is repeated though it may have been executed",
			Change{"pool/pendingrelease.go", "return p.Once && a.Sent && !refused", "return p.Once && a.Sent && !refused && !Broken(\"undo-once\")"}).in("readers-3").
			but("the answer to an undo must be lost, and the caller begin again through another daemon within the same 8 ms: seen once, and not in six minutes of today's worlds; TestUndo_ByACallersTokenIsNotRepeatedOnceItMayHaveBeenExecuted is a directed test"),
		patched("upgrade-undo", "the undo of an upgrade takes the read lease, too",
			Change{"redlock/lease/upgrade.go", takeBack, "\tif c == copyChanged && pool.Broken(\"upgrade-undo\") {\n\t\ta.undoWithin(lane, c, a.key, a.token, expiryRange{0, 2 * a.ends[lane]})\n\t\treturn\n\t}\n" + takeBack}).in("contest-3"),
		patched("fresh-twice", "two requests of one flush get a key that was free before it",
			Change{scripts + "acquires.lua", "no = given[KEYS[i]] or no", "no = no"}).in("throng-3"),
		patched("fresh-queue", "a request whose keys are free does not look at the queue",
			Change{scripts + "acquires.lua", "names[i], names[n + i] = lock, queue .. string.sub(lock, prefix + 1)", "names[i], names[n + i] = lock, lock"}).in("fair-3"),
		patched("bulk-own", "a release may be executed before an acquire with its own token that was queued first",
			Change{"pool/bulk.go", "if ex.keys[e.props.Key] != acquireJoint {", "if ex.keys[e.props.Key] != acquireJoint || Broken(\"bulk-own\") {"}).in("reloads-3"),
		patched("bulk-stay", "an acquire that waits for others waits also behind the release of its own token",
			Change{"pool/exchange.go", "if !e.props.Exclusive && !e.props.SealOnly {", "if !e.props.Exclusive && !e.props.SealOnly && (e.props.Bulk == \"\" || !Broken(\"bulk-stay\")) {"}).in("reloads-3"),
		patched("bulk-shifted", "an acquire reads the answer of the next one of its script's call",
			Change{"pool/bulk.go", "return r.Items[part]\n", "if Broken(\"bulk-shifted\") {\n\t\t\tpart = (part + 1) % len(r.Items)\n\t\t}\n\t\treturn r.Items[part]\n"}).in("permits-3"),
		patched("bulk-keys", "acquires of one flush are all made at the key of the first one",
			Change{"pool/bulk.go", "c.size == 0 || c.lock != lock {", "c.size == 0 || c.lock != lock && !Broken(\"bulk-keys\") {"}).in("readers-3"),
		patched("bulk-slot", "two acquires of one flush get one slot",
			Change{scripts + "permits.lua", "    if not holder and not given[slot] then", "    if not holder then"},
			Change{scripts + "permits.lua", "given[slot] == k and 1", "given[slot] and 1"}).in("permits-3"),
		patched("resent-passes", "what a master did not execute is sent again, though a later operation of its token has been executed",
			Change{"pool/bulk.go", "&& !f.isOvertaken(i, behind) {", "&& (!f.isOvertaken(i, behind) || Broken(\"resent-passes\")) {"}).in("reloads-3"),
		patched("resent-last", "what a master did not execute is sent again behind everything that was queued since",
			Change{"pool/window.go", "\t\tc.lane.queue.pushFirst(c.again)\n",
				"\t\tif Broken(\"resent-last\") {\n\t\t\tfor _, e := range c.again {\n\t\t\t\tc.lane.queue.push(e)\n\t\t\t}\n\t\t\tc.again = nil\n\t\t}\n\t\tc.lane.queue.pushFirst(c.again)\n"}).in("reloads-3"),
		patched("extend-stays", "extensions of a flush are executed in front of its acquires and releases",
			Change{"pool/operation.go", "p.Sealed && !p.Exclusive }", "p.Sealed && !p.Exclusive && !Broken(\"extend-stays\") }"}).in("reloads-3").
			but("an extension makes no copy: executed before an operation of its token that it passes, it is answered as if the two had come the other way round, and neither has been answered by then; TestBulk_KeepsTheOrderOfEveryKey is a directed test"),
		patched("earlier-try", "a release is not repeated on a master that may execute an earlier try of its acquire",
			Change{"redlock/lease/acquire.go", "\tknown := leaseRecord{until: g.Until(), gone", "\tif pool.Broken(\"earlier-try\") {\n\t\ta.call.copies = 0\n\t}\n\tknown := leaseRecord{until: g.Until(), gone"}).in("longleases-3"),
		patched("pending-release", "an unanswered release is not repeated",
			Change{"pool/group.go", "func (g *Group) RetryRelease(index int, d PendingRelease) {\n", "func (g *Group) RetryRelease(index int, d PendingRelease) {\n\tif Broken(\"pending-release\") {\n\t\treturn\n\t}\n"}),
	}
}

// brokenModes: rows of readers and of counted holders.
func brokenModes() []Mutant {
	return []Mutant{
		patched("unpurged", "readers whose time is over are counted",
			Change{scripts + "shape.lua", "redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. digits(now))", ""}).in("turning-3"),
		patched("caller-clock", "the caller's clock decides whether a reader's lease is over",
			Change{scripts + "shape.lua", "'(' .. digits(now)", "'(' .. ARGV[2]"}).in("readers-3"),
		patched("one-kind", "an extension adds up copies of a reader and of a writer",
			Change{"redlock/lease/extend.go", "return a.held && a == b }", "return a.held && (a == b || b.held && pool.Broken(\"one-kind\")) }"}).in("halves-3"),
		patched("levels-apart", "levels of two owners hold a key together",
			Change{scripts + "reader.lua", "    if owner ~= ownerOf(reader) then return 0 end\n", ""}).in("owners-3"),
		patched("counted-permits", "masters count permits, each for itself",
			Change{scripts + "slot.lua", "    if holder then return freeSlots(tonumber(n), slot, taken) end\n",
				"    if holder then\n      local answer = freeSlots(tonumber(n), slot, taken)\n      if #answer == 1 then return answer end\n      slot, holder = digits(answer[2]), nil\n    end\n"}).in("permits-3"),
	}
}

// brokenGroups: rows of several groups of masters.
func brokenGroups() []Mutant {
	return []Mutant{
		patched("slots", "a group's masters let daemons vote that give it other slots",
			Change{"pool/fingerprint.go", "\tif o.Slots != \"\" { //", "\tif o.Slots != \"\" && !Broken(\"slots\") { //"},
			Change{"pool/admission/configuration.go", "\tsum := sha256.Sum256([]byte(c.String()))\n\treturn strconv", "\tif mutants.Name() == \"slots\" {\n\t\tsame := *c\n\t\tsame.Slots = \"\"\n\t\tc = &same\n\t}\n\tsum := sha256.Sum256([]byte(c.String()))\n\treturn strconv"},
			Change{"redlock/groups/map.go", "\tif c.MapVersion < k.version {", "\tif c.MapVersion < k.version || pool.Broken(\"slots\") {"}).in("maps-3"),
		patched("slots-no-freeze", "slots go to another group as soon as the cut is in force",
			Change{"pool/setup/moves.go", "\treturn source.lease() - since, err\n",
				"\tif pool.Broken(\"slots-no-freeze\") {\n\t\treturn 0, err\n\t}\n\treturn source.lease() - since, err\n"}).in("slotmove-3"),
		patched("slots-registers-not-raised", "slots go to a group whose registers may be below the fences given in them",
			Change{"pool/setup/carry.lua", "redis.call('ZADD', seal, 'XX', 'GT', ARGV[2], identity)\n", ""}).in("slotclocks-3"),
		patched("slots-counters-not-installed", "slots go to another group without their counters",
			Change{"pool/setup/carry.lua", "  if n > 0 and n <= 2 then\n", "  if n > 0 and n <= 2 and ARGV[4] == '1' then\n"}).in("slotmove-3"),
		patched("slots-stale-counters", "a counter that a group had when it had the slots before wins over the one that comes back",
			Change{"pool/setup/carry.lua", "  if ARGV[4] == '0' then redis.call('DEL', key) end\n", "  if ARGV[4] == '0' and redis.call('TYPE', key).ok ~= 'string' then redis.call('DEL', key) end\n"},
			Change{"pool/setup/carry.lua", "  if value ~= own then redis.call('SET', key, value) end\n", "  if value ~= own then redis.call('SET', key, value, ARGV[4] == '0' and 'NX' or nil) end\n"}).in("slotmove-3"),
		patched("slots-late-operator", "an operator goes on with a move that others have undone since",
			Change{"pool/setup/moves.go", "\tif !m.stillWaits(source) {\n", "\tif !m.stillWaits(source) && !pool.Broken(\"slots-late-operator\") {\n"}).in("slotrivals-3"),
		patched("slots-unfinished-switch", "slots that a minority of a group's masters gives to it are no longer held for it",
			Change{"pool/setup/side.go", "\tif s.newest.InForce {\n\t\treturn s.owned\n", "\tif s.newest.InForce || pool.Broken(\"slots-unfinished-switch\") {\n\t\treturn s.owned\n"}).in("slotrivals-3"),
		patched("slots-cut-version", "a cut that is over gets the version of a later change of other slots",
			Change{"pool/setup/side.go", "\tnext.Slots, next.MapVersion = ownedText(owned), version\n",
				"\tnext.Slots, next.MapVersion = ownedText(owned), version\n\tif pool.Broken(\"slots-cut-version\") {\n\t\tnext.LeftAt = version\n\t}\n"}).in("slotrivals-3"),
		patched("joint-fence", "a lock of keys of several groups has the highest fence of its parts, whatever the registers of the other groups are",
			Change{"redlock/lease/joint.go", "p.Grant.Fence < j.fence {", "p.Grant.Fence < j.fence && !pool.Broken(\"joint-fence\") {"}).in("groups-3"),
		patched("slots-no-end-check", "what was begun before slots left the group is granted after that",
			Change{"redlock/engine/ballot.go", "b.moved = b.movedKey(); b.moved {", "b.moved = b.movedKey(); b.moved && !pool.Broken(\"slots-no-end-check\") {"}).in("slotmove-3"),
	}
}
