// Tests of what is printed at the start.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlockd/configs"
)

func TestBanner_ShowsWhatToTypeNextWithEmbeddedMasters(t *testing.T) {
	var out strings.Builder
	Banner(&out, configs.Default(), []string{"127.0.0.1:7379", "unix:/run/r"}, nil)
	for _, part := range []string{
		"listens on 127.0.0.1:7379, unix:/run/r\n", "5 embedded masters run in this process, for trying out only",
		"    redis-cli -p 7379\n", "    DLOCK invoices 30000\n", "    DUNLOCK invoices TOKEN",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
}

func TestBanner_NamesMastersAndQuorumWithoutPasswords(t *testing.T) {
	config, err := configs.Load([]string{"--masters", "a=redis://u:S3CR3T@h1,h2,h3"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Banner(&out, config, []string{":7379"}, func(n int) int { return n/2 + 1 })
	want := "redlockd listens on :7379\n3 masters, 2 must agree: a=h1:6379, h2:6379, h3:6379\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestBanner_NamesEveryGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redlockd.toml")
	tables := "[[group]]\nname = \"g1\"\nmasters = [\"h1\", \"h2\", \"h3\"]\nslots = \"0-16383\"\n[[group]]\nname = \"g2\"\nmasters = [\"h4\", \"h5\", \"h6\"]\nslots = \"none\"\n"
	if err := os.WriteFile(file, []byte(tables), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := configs.Load([]string{"--config", file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Banner(&out, config, []string{":7379"}, func(n int) int { return n/2 + 1 })
	want := "redlockd listens on :7379\ngroup g1, slots all: 3 masters, 2 must agree: h1:6379, h2:6379, h3:6379\ngroup g2, slots none: 3 masters, 2 must agree: h4:6379, h5:6379, h6:6379\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestRedisCLI_ReachesTheAddress(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:7379": "redis-cli -p 7379",
		"0.0.0.0:7379":   "redis-cli -p 7379",
		"[::]:7379":      "redis-cli -p 7379",
		"[::1]:7379":     "redis-cli -h ::1 -p 7379",
		"10.0.0.1:7379":  "redis-cli -h 10.0.0.1 -p 7379",
		"unix:/run/r":    "redis-cli -s /run/r",
		"tls:[::]:7379":  "redis-cli --tls --cacert CA-FILE -p 7379",
	} {
		if got := redisCLI(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
