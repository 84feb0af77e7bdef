package configs

// Tests of --help, of the annotated example and of warnings.

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHelp_HasEveryOptionInALineOfItsOwn(t *testing.T) {
	lines := strings.Split(Help(), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns, at most 100 and no blanks at the end: %q", n, line)
		}
	}
	for _, option := range options(new(Config)) {
		n := 0
		for _, line := range lines {
			if strings.HasPrefix(line+" ", "  --"+option.name+" ") {
				n++
			}
		}
		if n != 1 || option.help == "" {
			t.Errorf("--%s has %d lines, and the help %q", option.name, n, option.help)
		}
	}
}

func TestHelp_ShowsTheDefaults(t *testing.T) {
	for _, value := range []string{"[127.0.0.1:7379]", "[100ms]", "[1m]", "[strict]", "[5]"} {
		if !strings.Contains(Help(), value) {
			t.Errorf("%s is missing", value)
		}
	}
}

// setting is a line of the example that sets something, commented out or not.
var setting = regexp.MustCompile(`(?m)^#?([a-z-]+) = `)

func example(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("redlockd.toml")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestExampleFile_HasEveryOptionOnce(t *testing.T) {
	count := make(map[string]int)
	for _, match := range setting.FindAllStringSubmatch(example(t), -1) {
		count[match[1]]++
	}
	for _, option := range options(new(Config)) {
		if want := 1; option.name != "config" && count[option.name] != want {
			t.Errorf("%s is there %d times", option.name, count[option.name])
		}
		delete(count, option.name)
	}
	for name := range count {
		t.Errorf("%s is no option", name)
	}
}

// withoutDefault are settings whose example is not what holds without them.
var withoutDefault = []string{"masters", "masters-file", "requirepass", "users", "tls-cert", "tls-key", "tls-ca", "admin-listen", "cluster-announce", "key-prefixes", "follow-to", "metrics-prefixes", "otlp-endpoint", "script-class", "fair-keys"}

func TestExampleFile_HoldsTheDefaults(t *testing.T) {
	var all []string
	for _, line := range strings.Split(example(t), "\n") {
		if setting.MatchString(line) && !slices.Contains(withoutDefault, setting.FindStringSubmatch(line)[1]) {
			line = strings.TrimPrefix(line, "#")
		}
		all = append(all, line)
	}
	for name, content := range map[string]string{"as it is": example(t), "with the settings in comments": strings.Join(all, "\n")} {
		config := mustLoad(t, []string{"--config", writeFile(t, content)}, nil)
		config.File = ""
		if want := Default(); !reflect.DeepEqual(config, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, config, want)
		}
	}
}

func TestExampleFile_ShowsMastersThatLoad(t *testing.T) {
	content := strings.Replace(example(t), "#masters = ", "masters = ", 1)
	if config := mustLoad(t, []string{"--config", writeFile(t, content)}, nil); len(config.Masters) != 3 {
		t.Errorf("got %v", config.Masters)
	}
	for _, match := range regexp.MustCompile(`(?m)^#   "([^"]+)"`).FindAllStringSubmatch(example(t), -1) {
		if _, err := parseMaster(match[1]); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
	}
}

func TestLoad_WarnsOfPasswordsThatOthersCanRead(t *testing.T) {
	secret, plain := "redis://u:S3CR3T@a,b,c", "a,b,c"
	open, closed := writeFile(t, `masters = "`+secret+`"`), writeFile(t, `masters = "`+secret+`"`)
	harmless := writeFile(t, `masters = "`+plain+`"`)
	list := "# the group\n\n redis://u:S3CR3T@a \nb\nc\n"
	openList, closedList := writeFile(t, list), writeFile(t, list)
	boots := writeFile(t, "bootstrap = true")
	key, closedKey := writeFile(t, "-----BEGIN PRIVATE KEY-----"), writeFile(t, "-----BEGIN PRIVATE KEY-----")
	for _, path := range []string{open, harmless, openList, key} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, environ []string
		want          string
	}{
		{[]string{"--config", open}, nil, "chmod o-r " + open},
		{[]string{"--config", closed}, nil, ""},
		{[]string{"--config", harmless}, nil, ""},
		{[]string{"--config", open, "--masters", plain}, nil, ""},
		{[]string{"--masters", secret}, nil, "list of processes"},
		{[]string{"--masters", plain}, nil, ""},
		{nil, []string{"REDLOCKD_MASTERS=" + secret}, ""},
		{[]string{"--masters-file", openList}, nil, "chmod 600 " + openList},
		{[]string{"--masters-file", closedList}, nil, ""},
		{[]string{"--listen", "unix:/tmp/s", "--unix-mode", "0777"}, nil, "every user of this machine can connect"},
		{[]string{"--listen", "unix:/tmp/s", "--unix-mode", "0770"}, nil, ""},
		{[]string{"--unix-mode", "0777"}, nil, ""},
		{[]string{"--listen", "tls:127.0.0.1:1", "--tls-cert", open, "--tls-key", key}, nil, "chmod 600 " + key},
		{[]string{"--listen", "tls:127.0.0.1:1", "--tls-cert", open, "--tls-key", closedKey}, nil, ""},
		{[]string{"--restart-guard=off"}, nil, "two clients may hold one lock"},
		{[]string{"--ids-durability=off"}, nil, "ids may be given a second time"},
		{nil, []string{"REDLOCKD_BOOTSTRAP=true"}, "use `redlockd bootstrap` once"},
		{nil, []string{"REDLOCKD_BOOTSTRAP=true"}, "bootstrap = true (from REDLOCKD_BOOTSTRAP)"},
		{[]string{"--bootstrap"}, nil, "bootstrap = true (from --bootstrap)"},
		{[]string{"--config", boots}, nil, "bootstrap = true (from " + boots + ")"},
		{[]string{"--config", boots, "--bootstrap=false"}, nil, ""},
	} {
		got := strings.Join(mustLoad(t, c.args, c.environ).Warnings, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "S3CR3T") {
			t.Errorf("%q %q: warnings %q, want %q", c.args, c.environ, got, c.want)
		}
	}
}

func TestNearest_CountsEdits(t *testing.T) {
	known := []string{"masters", "master-timeout", "max-ttl", "max-keep"}
	for name, want := range map[string]string{"master": "masters", "mastertimeout": "master-timeout", "max_ttl": "max-ttl", "maxkeep": "max-keep", "": "masters", "max-ttl": "max-ttl"} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}
