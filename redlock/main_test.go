package redlock

import (
	flags "flag"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// manyAtOnce is how many parallel tests run at once at least: they mostly wait.
const manyAtOnce = 6

func TestMain(m *testing.M) {
	flags.Parse()
	if at := flags.Lookup("test.parallel"); at.Value.String() == at.DefValue {
		if err := at.Value.Set(strconv.Itoa(max(manyAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}
