package mutants

// dropin.go: the rows of the mutants of locks that clients take with Redis commands.

// brokenDropIn: rows of the code that serves SET NX, DEL, GET and the scripts of libraries.
func brokenDropIn() []Mutant {
	return []Mutant{
		patched("vote-class", "any answer of a script that takes a lock is a yes",
			Change{"redlock/lease/scriptlock.go", "\tscriptVote := f.script.Vote(own)\n",
				"\tscriptVote := f.script.Vote(own)\n\tif scriptVote == engine.No && pool.Broken(\"vote-class\") {\n\t\tscriptVote = engine.Yes\n\t}\n"}).in("libraries-3"),
		patched("drop-class", "any answer of a script that releases or extends is a yes",
			Change{"redlock/lease/scriptrun.go", "\tvote = r.Script.Vote(answer.Reply)\n",
				"\tvote = r.Script.Vote(answer.Reply)\n\tif vote == engine.No && pool.Broken(\"drop-class\") {\n\t\tvote = engine.Yes\n\t}\n"}).in("libraries-3"),
		patched("script-revive", "a script's extension re-creates what only a minority holds",
			Change{"redlock/lease/scriptextend.go", "func (s *scriptExtension) Decided(v quorum.Result) {\n",
				"func (s *scriptExtension) Decided(v quorum.Result) {\n\tif v == quorum.Refused && len(s.voters(engine.Yes)) > 0 && pool.Broken(\"script-revive\") {\n\t\tv = quorum.Granted\n\t}\n"}).in("libraries-3"),
		patched("script-undo", "what a script took is not taken back",
			Change{"redlock/lease/scriptlock.go", "\tif c != copyMade && c != copyMaybe || c == copyMaybe && f.script.Prolongs {",
				"\tif pool.Broken(\"script-undo\") || c != copyMade && c != copyMaybe || c == copyMaybe && f.script.Prolongs {"}).in("dropin-3"),
		patched("equal", "an equal value is taken for one's own",
			Change{"redlock/lease/new.go", "\tcase r.Valued, r.Mode == Exclusive &&", "\tcase r.Valued && !pool.Broken(\"equal\"), r.Mode == Exclusive &&"}).in("alike-3"),
		patched("script-shortens", "a script's shorter end counts on every master that receives it",
			Change{scripts + "noshorten.lua", "set >= 0 and set < ends then", "false then"}).in("amnesia-3"),
		patched("shorten-any", "a script's earlier end takes effect, whatever was given to the key since",
			Change{scripts + "trim.lua", "if endOf(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end\n", ""}).in("libraries-3"),
		patched("uneven", "each master adds to what it has of a lease itself",
			Change{"redlock/lease/scriptextend.go", "- late; lease > 0 {\n", "- late; lease > 0 && !pool.Broken(\"uneven\") {\n"}).in("libraries-3"),
		patched("retake-own", "a script that takes a lock anew takes back what it found",
			Change{"redlock/lease/scriptlock.go", "!strings.Contains(before, \"0\"):\n", "!strings.Contains(before, \"0\") && !pool.Broken(\"retake-own\"):\n"},
			Change{"redlock/lease/scriptlock.go", "\t\tcase f.script.existed(f.before[lane], id.Key):\n",
				"\t\tcase f.script.existed(f.before[lane], id.Key) && !pool.Broken(\"retake-own\"):\n"}).in("libraries-3"),
		patched("script-margin", "a script's copies end with the lease, not a master timeout later",
			Change{"redlock/lease/script.go", "\treturn (ttl + late).Milliseconds()\n",
				"\tif pool.Broken(\"script-margin\") {\n\t\tlate = 0\n\t}\n\treturn (ttl + late).Milliseconds()\n"}).in("libraries-3"),
		patched("script-pending", "a script's release is not repeated on a master that did not answer",
			Change{"redlock/lease/scriptrun.go", "if !engine.FromMaster(answer.Reply) {",
				"if answer.Reply.Err != nil && !engine.FromMaster(answer.Reply) && !pool.Broken(\"script-pending\") {"}).in("longleases-3"),
		patched("delete-all", "DEL deletes whatever stands at a key",
			Change{"redlock/lease/scriptwrite.go", "if r.Effect == WriteDeletes && r.Equal == \"\" {", "if r.Effect == WriteDeletes && r.Equal == \"\" && !pool.Broken(\"delete-all\") {"}).in("deleted-3"),
		patched("short-repeat", "the undo of a shared value is repeated, and takes a later holder's copy",
			Change{"redlock/lease/undo.go", "c != copyMaybe && len(token) >= shortToken {", "c != copyMaybe && (len(token) >= shortToken || pool.Broken(\"short-repeat\")) {"},
			Change{"redlock/lease/scriptlock.go", "late, tight)", "late, tight && !pool.Broken(\"short-repeat\"))"}).in("alike-3"),
		patched("one-view", "the view of one master is shown",
			Change{"redlock/lease/view.go", "\t\tif alike >= quorum {\n", "\t\tif alike >= quorum || pool.Broken(\"one-view\") {\n"}).in("libraries-3"),
		patched("quarantined-view", "the view of a quarantined master counts",
			Change{"redlock/lease/view.go", "ok && engine.CountsAsVote(answer) {", "ok && (engine.CountsAsVote(answer) || answer.Seal.Good && pool.Broken(\"quarantined-view\")) {"}).in("amnesia-3"),
	}
}
