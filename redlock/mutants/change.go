package mutants

// change.go: the rows of changes of the masters.

// brokenChanges: rows of the configuration's epoch, and of the change to the next one.
func brokenChanges() []Mutant {
	return []Mutant{
		patched("older-file", "what a master has of changes in an older file counts",
			Change{"pool/admission/identity.go", "\treturn seal != \"\" && first != run\n", "\treturn seal != \"\" && first != run && mutants.Name() != \"older-file\"\n"},
			Change{"pool/admission/identity.go", "\t\treturn i.RunID != run &&", "\t\treturn mutants.Name() != \"older-file\" && i.RunID != run &&"},
			Change{"pool/admission/admit.lua", "local unbroken = ", "local unbroken = true or "}).in("membership-files"),
		patched("later-epoch", "a daemon serves beside a later configuration that is in force",
			Change{"pool/evidence.go", "\tif mark == \"\" {\n\t\treturn nil\n", "\tif mark == \"\" || Broken(\"later-epoch\") || Broken(\"one-epoch\") {\n\t\treturn nil\n"}).in("membership-backups").
			but("a register tells of the older memory wherever something was granted in between; TestEpoch_ADurableMasterFromABackupGivesTheFormerListNoQuorum is a directed test"),
		patched("older-change", "a change counts masters that may have missed a later one",
			Change{"pool/setup/requirements.go", "return !s.older && slices", "return (!s.older || pool.Broken(\"older-change\")) && slices"}).in("membership-files").
			but("an operator must reach the older master and the one that was left out, and no other; TestEpoch_AChangeOfAnOlderFileDoesNotTakePlace is a directed test"),
		patched("claims-order", "of a blank group, a daemon begins with any master that is blank, whatever the others carry",
			Change{"pool/epoch.go", "\tif text != \"\" {\n\t\ttext += o.nextText(g.epoch.Mark, g.epoch.next)", "\tif h.lane.carries.Fingerprint == \"\" && g.epoch.Mark != \"\" && g.evidenceLocked(now).blank(&o).Mark != \"\" && Broken(\"claims-order\") {\n\t\treturn \"\"\n\t}\n\tif text != \"\" {\n\t\ttext += o.nextText(g.epoch.Mark, g.epoch.next)"}).in("membership-blank").
			but("both daemons must claim within a moment of a power loss, and a master be lost again; not seen in 2.5 million executions, the order is argued in pool/evidence.go. TestEpoch_ABlankGroupBeginsWithOneOfTwoLists is a directed test"),
		patched("in-force", "a daemon uses a change of the masters that is not in force",
			Change{"pool/admission/survey.go", "c.Stored.InForce && c.Stored", "(c.Stored.InForce || mutants.Name() == \"in-force\") && c.Stored"}).in("membership-rivals").
			but("two operators must stop after the same number of masters; not seen in 2.5 million executions. TestEpoch_OfTwoChangesThatStopHalfwayNoneIsUsed is a directed test"),
		patched("one-epoch", "a daemon admits a master under a former epoch of its own settings, and heeds no later one, which would cover that",
			Change{"pool/epoch.go", "\te.Known = found\n", "\te.Known = found\n\tif Broken(\"one-epoch\") {\n\t\te.since = 0\n\t\treturn nil\n\t}\n"},
			Change{"pool/epoch.go", "\treturn !g.pool.embedded() &&", "\treturn !g.pool.embedded() && !Broken(\"one-epoch\") &&"}).in("membership-again").
			but("a connection of before two changes must be alive when the daemon's list is in force again; not seen in 2.5 million executions. TestEpoch_AConnectionOfBeforeTwoChangesDoesNotVote is a directed test"),
		patched("newcomer-first", "a change begins with the new masters",
			Change{"pool/setup/rename.go", "\tif err := c.renameAll(false); err != nil {\n", "\tif all := c.all; pool.Broken(\"newcomer-first\") {\n\t\tc.all = slices.DeleteFunc(slices.Clone(all), func(one *candidate) bool { return has(c.former, one.master.Name) })\n\t\t_ = c.beginNew()\n\t\tc.all = all\n\t}\n\tif err := c.renameAll(false); err != nil {\n"}).in("membership-replace").
			but("an operator must be interrupted for the longest lease between the new master and the rename; not seen in 2.5 million executions. TestEpoch_AChangeThatIsInterruptedBeginsWithNoNewMaster is a directed test"),
		patched("change-rest", "a change follows another at once",
			Change{"pool/setup/requirements.go", "\tif wait <= 0 {\n", "\tif wait <= 0 || pool.Broken(\"change-rest\") {\n"}).in("membership-resize").
			but("a lease must outlive two changes, and each waits for new memories to be sure of its masters; not seen in 2.5 million executions. TestFollow_AChangeAfterAnotherWaitsForTheLeases is a directed test"),
		patched("meet", "a change is allowed whose quorums need not meet those of the former list",
			Change{"pool/setup/requirements.go", "\tcase q+next <= n:\n", "\tcase q+next <= n && !pool.Broken(\"meet\"):\n"}).in("membership-halved").
			but("a lease must rest on a bare quorum that shares no master with the new list's quorum; not seen in 2.5 million executions. TestFollow_AChangeWhoseQuorumsNeedNotMeetIsRefused is a directed test"),
		patched("rename-blind", "a change renames what carries another configuration",
			Change{"pool/setup/rename.lua", "(former or print == new)", "print"},
			Change{"pool/setup/rename.lua", "    if former then\n", "    if print ~= new then\n"}).in("membership-rivals").
			but("two operators must write within a moment; TestEpoch_OfTwoChangesAtOnceOneTakesPlace is a directed test"),
		patched("lost-change", "a change takes the masters of another one that may have a quorum",
			Change{"pool/setup/rivals.go", "\treturn higher > n-pool.Quorum(n)\n", "\treturn higher > n-pool.Quorum(n) || higher > 0 && pool.Broken(\"lost-change\")\n"}).in("membership-rivals").
			but("an operator must stop between the last rename and the next write; TestEpoch_AChangeThatHasAQuorumIsNotReplaced is a directed test"),
		patched("carry", "a change of the masters carries no counters and no records of work",
			Change{"pool/setup/share.go", "\tif c.former.MapVersion != c.next.MapVersion {\n", "\tif c.former.MapVersion != c.next.MapVersion || pool.Broken(\"carry\") {\n"}).in("carrying-replace"),
		patched("carry-unsure", "a master that joins vouches for counters of which no quorum is sure",
			Change{"pool/setup/share.go", "\tcase c.forgot:\n", "\tcase c.forgot && !pool.Broken(\"carry-unsure\"):\n"}).in("carrying-memory").
			but("a master that remembers the counter must be away while others have lost it; TestCarry_NobodyVouchesForIDsThatNoQuorumRemembers is a directed test"),
		patched("blank-carries", "a database that was emptied counts for a change, whatever the master's others carry",
			Change{"pool/setup/requirements.go", "unused && slices.ContainsFunc(one.seals, carries)", "unused && (pool.Broken(\"blank-carries\") || slices.ContainsFunc(one.seals, carries))"}).in("membership-emptied").
			but("daemons begin an emptied master under what a quorum carries, so a change without a quorum gets none of them; not seen in 2.5 million executions. TestChangeMasters_AMasterThatWasEmptiedCarriesNothing is a directed test"),
		patched("carry-lowers", "what a change carries takes the place of a higher value",
			Change{"pool/setup/carry.lua", "  if has and less(value, has) then value = has end\n", ""}).in("carrying-more"),
	}
}
