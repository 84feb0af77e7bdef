package mutants

// dropin.go: the rows of the mutants of locks that clients take with Redis commands.

// brokenDropIn: rows of the code that serves SET NX, DEL, GET and what scripts of libraries become.
func brokenDropIn() []Mutant {
	return []Mutant{
		patched("vote-class", "any answer of a master to a retake is a yes",
			Change{"redlock/lease/swap.go", "\tcase code != 1:\n", "\tcase code != 1 && !pool.Broken(\"vote-class\"):\n"}).in("libraries-3"),
		patched("drop-class", "a lease is given another end where its token has no copy",
			Change{"redlock/lease/retime.go", "\tcase lacksCopy(answer.Reply):\n\t\treturn engine.No\n",
				"\tcase lacksCopy(answer.Reply):\n\t\tif pool.Broken(\"drop-class\") {\n\t\t\tr.copies[lane] = heldCopy{held: true}\n\t\t\treturn engine.Neither\n\t\t}\n\t\treturn engine.No\n"}).in("libraries-3"),
		patched("swap-undo", "what a lock with a value of its own for each key took is not taken back",
			Change{"redlock/lease/swap.go", "\tif c != copyMade {\n", "\tif c != copyMade || pool.Broken(\"swap-undo\") {\n"}).in("dropin-3"),
		patched("equal", "an equal value is taken for one's own",
			Change{"redlock/lease/plain.go", "func (valuedMode) ballot(*lockBallot) ballotMode {\n", "func (valuedMode) ballot(a *lockBallot) ballotMode {\n\tif pool.Broken(\"equal\") {\n\t\treturn &tokenMode{queueCheck: newQueueCheck(a)}\n\t}\n"}).in("alike-3"),
		patched("swap-shortens", "the shorter end of a retake counts on every master that receives it",
			Change{scripts + "swap.lua", "if had[i] >= new then", "if false then"}).in("amnesia-3"),
		patched("retime-shortens", "the shorter end of EXPIRE or SET counts on every master that receives it",
			Change{scripts + "retime.lua", "else new = prolonged(new, new + 1) end", "else new = E end"}).in("amnesia-3"),
		patched("shorten-any", "an earlier end takes effect, whatever was given to the key since",
			Change{scripts + "trim.lua", "if endOf(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end\n", ""}).in("libraries-3"),
		patched("uneven", "what is added to a lease is added to the least that masters have of it",
			Change{"redlock/lease/view.go", "\t\t\tone.Left, one.Longest,", "\t\t\tif pool.Broken(\"uneven\") {\n\t\t\t\tlongest = left\n\t\t\t}\n\t\t\tone.Left, one.Longest,"}).in("libraries-3"),
		patched("retake-own", "a retake takes back what it found",
			Change{"redlock/lease/swap.go", "\tif !strings.Contains(s.before, \"0\") {\n", "\tif !strings.Contains(s.before, \"0\") && !pool.Broken(\"retake-own\") {\n"},
			Change{"redlock/lease/swap.go", "before[i] != '1' {", "before[i] != '1' || pool.Broken(\"retake-own\") {"}).in("libraries-3"),
		patched("delete-all", "DEL deletes whatever stands at a key",
			Change{"redlock/lease/write.go", "if r.Effect == WriteDeletes && r.Equal == \"\" {", "if r.Effect == WriteDeletes && r.Equal == \"\" && !pool.Broken(\"delete-all\") {"}).in("deleted-3"),
		patched("replace-any", "SET with IFEQ replaces whatever value stands at a key",
			Change{scripts + "write.lua", "if ARGV[4] ~= '' and holder ~= ARGV[4] then return 0 end\n", ""}).in("libraries-3"),
		patched("short-repeat", "the undo of a shared value is repeated, and takes a later holder's copy",
			Change{"redlock/lease/undo.go", "|| len(token) >= shortToken {", "|| len(token) >= shortToken || pool.Broken(\"short-repeat\") {"}).in("alike-3"),
		patched("one-view", "the view of one master is shown",
			Change{"redlock/lease/view.go", "\t\tif alike >= quorum {\n", "\t\tif alike >= quorum || pool.Broken(\"one-view\") {\n"}).in("libraries-3"),
		patched("quarantined-view", "the view of a quarantined master counts",
			Change{"redlock/lease/view.go", "ok && engine.CountsAsVote(answer) {", "ok && (engine.CountsAsVote(answer) || answer.Seal.Good && pool.Broken(\"quarantined-view\")) {"}).in("amnesia-3"),
	}
}
