package daemon

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestMemory_LimitIsThatOfTheControlGroup(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups":             {nil, math.MaxInt64},
		"no limit":                      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, math.MaxInt64},
		"a container":                   {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n"}, 64 << 20},
		"a unit in a slice with less":   {map[string]string{"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/memory.max": "5", "sys/fs/cgroup/a.slice/b.service/memory.max": "9"}, 5},
		"a unit with less":              {map[string]string{"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/memory.max": "9", "sys/fs/cgroup/a.slice/b.service/memory.max": "5"}, 5},
		"version 1":                     {map[string]string{"proc/self/cgroup": "5:cpu:/a\n4:memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "7"}, 7},
		"version 1, the path not there": {map[string]string{"proc/self/cgroup": "4:memory:/docker/a\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "7"}, 7},
		"a line of something else":      {map[string]string{"proc/self/cgroup": "4\n\n0::/../a\n"}, math.MaxInt64},
	} {
		files := fstest.MapFS{}
		for path, text := range c.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := controlGroupLimit(files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestMemory_GoKeepsSevenEighthsOfTheLimitOrTheOperatorsOwn(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	group := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("8000000000000")}}
	for _, c := range []struct {
		files fstest.MapFS
		set   string
		want  int64
	}{{nil, "", before}, {group, "5TiB", before}, {group, "off", before}, {group, "", 7e12}} {
		t.Setenv("GOMEMLIMIT", c.set)
		limitMemory(c.files)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%d with GOMEMLIMIT=%s and %d files, want %d", got, c.set, len(c.files), c.want)
		}
	}
}
