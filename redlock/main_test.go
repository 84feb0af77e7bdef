package redlock

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}
