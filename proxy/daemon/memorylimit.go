package daemon

// The memory limit of the container or of the systemd unit.
//
// Go collects garbage by the size of the heap, and knows no limit of the kernel's: in 64 MB,
// a daemon that may grow to 24 MB and serves some hostile clients would be killed. So the
// daemon gives Go seven eighths of the limit. The rest is for the kernel's part: sockets, and
// pages of the program.

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory sets Go's memory limit, unless the operator set GOMEMLIMIT.
func limitMemory(files fs.FS) {
	if limit := controlGroupLimit(files); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 8 * 7)
	}
}

// controlGroupLimit is the least limit of the control groups that this process is in, of either
// version; math.MaxInt64 is none. A container that does not see its group's path has the limit
// at the root.
func controlGroupLimit(files fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(files, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		fields := append(strings.SplitN(strings.TrimSpace(line), ":", 3), "", "")
		root, name := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			root, name = root+"/"+fields[1], "memory.limit_in_bytes" // of memory; others have no such file
		}
		for group := path.Join(root, fields[2]); strings.HasPrefix(group, root); group = path.Dir(group) {
			text, _ := fs.ReadFile(files, path.Join(group, name))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				least = min(least, n)
			}
		}
	}
	return least
}
