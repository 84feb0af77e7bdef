// Version and build of this program.

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the module's version, "(devel)" for a build from a working copy
// without one.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Build is one line: the version, the commit if the build recorded it, and the
// toolchain.
func Build() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = ", commit " + setting.Value
			}
		}
	}
	return fmt.Sprintf("redlockd %s%s, %s %s/%s", Version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
