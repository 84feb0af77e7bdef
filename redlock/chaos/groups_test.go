package chaos

// groups_test.go: stands whose masters are several groups. The masters of the first group come
// first, and each group has every so many quarter of the slots: the keys of each workload are
// spread over all groups.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"redlockd/redlock/slots"
)

// quarter is how many slots one range of a group has.
const quarter = slots.Count / 4

// groupFile is a configuration with the masters of each group, and its slots.
func (s *stand) groupFile(masters []string) string {
	s.t.Helper()
	ranges := make([]string, s.plan.groups)
	for first := 0; first < slots.Count; first += quarter {
		ranges[s.groupOfSlot(first)] += fmt.Sprintf(",%d-%d", first, first+quarter-1)
	}
	text := ""
	for i, n := 0, s.groupSize(); i < s.plan.groups; i++ {
		text += fmt.Sprintf("[[group]]\nname = \"g%d\"\nmasters = %q\nslots = %q\n", i+1, strings.Join(masters[i*n:(i+1)*n], ","), ranges[i][1:])
	}
	path := filepath.Join(s.t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// groupSize is how many masters a group has.
func (s *stand) groupSize() int { return len(s.masters) / max(1, s.plan.groups) }

func (s *stand) groupOfMaster(master int) int { return master / s.groupSize() }

func (s *stand) groupOfSlot(slot int) int { return slot / quarter % max(1, s.plan.groups) }

// groupOf is the group of a key, a counter or a piece of work.
func (s *stand) groupOf(name string) int { return s.groupOfSlot(slots.Of(name)) }
