package mutants

import (
	"os/exec"
	"testing"
)

func TestMutants_EveryPatchApplies(t *testing.T) {
	if err := Misfits("../.."); err != nil {
		t.Error(err)
	}
}

// The long tests build programs of it; this finds sooner what no longer compiles.
func TestMutants_CompileTogether(t *testing.T) {
	overlay, err := Overlay("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "./pool/...", "./redlock")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
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
