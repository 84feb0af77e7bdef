package mutants

import "testing"

func TestMutants_EveryPatchApplies(t *testing.T) {
	if err := Misfits("../.."); err != nil {
		t.Error(err)
	}
}

func TestMutants_HaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		if seen[name] {
			t.Errorf("two mutants are called %s", name)
		}
		seen[name] = true
	}
}
