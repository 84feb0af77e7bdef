package mutants

import "testing"

func TestScript_ChangesTheScriptOfItsMutantAlone(t *testing.T) {
	defer func(m *Mutant) { active = m }(active)
	owner := Find("owner").Changes[0]
	for _, one := range []struct{ mutant, file, want string }{
		{"", owner.File, owner.Old},
		{"owner", owner.File, owner.New},
		{"owner", "redlock/scripts/extend.lua", owner.Old},
		{"quorum", owner.File, owner.Old},
	} {
		active = Find(one.mutant)
		if got := Script(one.file, owner.Old); got != one.want {
			t.Errorf("%q: %s is %q, want %q", one.mutant, one.file, got, one.want)
		}
	}
}
