// Version and build of this program.

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release and revision are the version and the commit that the linker sets in released
// binaries (.ci/build).
var release, revision string

// Version returns the version of the release; of other builds, the module's version, or "(devel)"
// for a working copy without one.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Build is one line: the version, the commit if the build recorded it, and the
// toolchain.
func Build() string {
	commit := revision
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	if commit != "" {
		commit = ", commit " + commit
	}
	return fmt.Sprintf("redlockd %s%s, %s %s/%s", Version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
