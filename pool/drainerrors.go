// Errors of drains.

package pool

import (
	"fmt"
	"strings"
)

// Undrainable means that the masters that would be left are no quorum; nothing
// was changed.
type Undrainable struct {
	Master        string
	DB            int
	Left          int // masters that may vote now without it
	Needed, Total int
	Missing       []string // one phrase for each of the others that may not
}

func (e *Undrainable) Error() string {
	text := fmt.Sprintf("master %s cannot be drained: without it %d of %d masters may vote in database %d, %d are needed", e.Master, e.Left, e.Total, e.DB, e.Needed)
	if len(e.Missing) > 0 {
		text += "; first bring back " + strings.Join(e.Missing, ", ")
	}
	return text
}

// NoMaster means that no master has the name.
type NoMaster struct {
	Name  string
	Names []string
}

func (e *NoMaster) Error() string {
	return fmt.Sprintf("no master is called %q; the names are %s", e.Name, strings.Join(e.Names, ", "))
}
