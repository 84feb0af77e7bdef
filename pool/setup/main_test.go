package setup

import (
	"testing"

	"go.uber.org/goleak"
)

// ants keeps a pool of its own from the start of the program on: it is not ours to end.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
