package configs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReadUsers_ReadsTheExample(t *testing.T) {
	users, err := ReadUsers("users.toml")
	if err != nil {
		t.Fatal(err)
	}
	digests := [][sha256.Size]byte{sha256.Sum256([]byte("change-me"))}
	want := []User{
		{Name: "billing", Passwords: digests, Keys: []string{"invoices:*", "billing"}, Commands: []string{"lock", "read"}, Denied: []string{}, Held: 1000, Rate: 500, Counters: 20, Connections: 64, MaxHold: time.Hour},
		{Name: "operator", Passwords: digests, Keys: []string{"*"}, Commands: []string{"lock", "read", "id", "work", "admin", "force"}, Disabled: true},
	}
	if !reflect.DeepEqual(users, want) {
		t.Errorf("got %+v\nwant %+v", users, want)
	}
}

func TestReadUsers_ReportsWhatIsWrongAndWhere(t *testing.T) {
	for content, part := range map[string]string{
		"":                                     "holds no user",
		"billing = 1":                          "billing (from FILE, line 1): is not a table of users",
		"[users.a]":                            "users (from FILE, line 1): is not a table of users",
		"user = 5":                             "is not a table of users",
		"[user]\na = 5":                        "user.a (from FILE, line 2): is a whole number and not a table",
		"[user.a]\npasword-sha256 = 'x'":       "user.a.pasword-sha256 (from FILE, line 2): is no setting of a user; the nearest one is password-sha256",
		"[user.a]\npassword-sha256 = 'S3CR3T'": "holds as entry 1 no SHA-256 of 64 hex digits",
		"[user.a]\npassword-sha256 = ''":       "user.a.password-sha256 (from FILE, line 2): is empty",
		"[user.a]\npassword-sha256 = ['']":     "user.a.password-sha256 (from FILE, line 2): is empty",
		"[user.a]\npassword-argon2id = ''":     "is empty",
		"[user.a]\npassword-sha256 = 5":        "is a whole number and neither text nor an array",
		"[user.a]\nheld = -1":                  "user.a.held = -1 (from FILE, line 2): is not a number from 0",
		"[user.a]\nrate = 10000001":            "is not a number from 0",
		"[user.a]\ncounters = 100001":          "user.a.counters = 100001 (from FILE, line 2): is not a number from 0 (no limit) to 100000",
		"[user.a]\nconnections = -1":           "user.a.connections = -1 (from FILE, line 2): is not a number from 0",
		"[user.a]\nrate = 1.5":                 "is a number with a fraction",
		"[user.a]\nenabled = 'maybe'":          "is neither true nor false",
		"[user.a]\nkeys = [1]":                 "holds a whole number as entry 1",
		"[user.a":                              "is not TOML in line 1",
	} {
		path := writeFile(t, content)
		_, err := ReadUsers(path)
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(part, "FILE", path)) || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: got %v, want %q", content, err, part)
		}
	}
}

func TestLoad_RefusesAccessThatCannotWork(t *testing.T) {
	good := "[user.default]\npassword-sha256 = \"" + strings.Repeat("0", 64) + "\"\n"
	wantRefused(t, []string{"--users", "/does/not/exist"}, nil, "users = ", "/does/not/exist", "no such file")
	wantRefused(t, []string{"--users", writeFile(t, "[user.a]\nheld = -1")}, nil, "user.a.held is not a number from 0")
	wantRefused(t, []string{"--users", writeFile(t, good), "--requirepass", "S3CR3T"}, nil, "leave one out")
	wantRefused(t, []string{"--listen", "tls::7379"}, nil, "tls-cert", "is missing")
	wantRefused(t, []string{"--tls-cert", "/c", "--tls-key", "/k"}, nil, "no address of listen begins with tls:")
	wantRefused(t, []string{"--listen", "tls::7379", "--tls-cert", "/c"}, nil, "tls-key", "belong together")
	wantRefused(t, []string{"--listen", "tls::7379", "--tls-cert", "/c", "--tls-key", "/k", "--tls-client-auth", "required"}, nil, "tls-ca", "is missing")
	wantRefused(t, []string{"--listen", "tls::7379", "--tls-cert", "/c", "--tls-key", "/k", "--tls-ca", "/a"}, nil, "has no effect while tls-client-auth is off")
	wantRefused(t, []string{"--listen", "tls:unix:/run/r"}, nil, "listen")
	for _, mode := range []string{"0888", "1777", "rwx", "-1"} {
		wantRefused(t, []string{"--unix-mode", mode}, nil, "unix-mode")
	}
	wantRefused(t, []string{"--config", writeFile(t, "unix-mode = 700")}, nil, "unix-mode", "not text in quotes")
	wantRefused(t, []string{"--requirepass", strings.Repeat("S3CR3T", 100)}, nil, "requirepass (from --requirepass): is too long")
	if config := mustLoad(t, []string{"--listen", "tls::7379,tls:[::1]:1", "--tls-cert", "/c", "--tls-key", "/k", "--unix-mode", "0770"}, nil); config.UnixMode != 0o770 {
		t.Errorf("mode %o", config.UnixMode)
	}
}

func TestConfig_NeverShowsItsPassword(t *testing.T) {
	config := mustLoad(t, nil, []string{"REDLOCKD_REQUIREPASS=S3CR3T"})
	all := fmt.Sprintf("%v %+v %#v %s", config, config, config, config.Settings("*"))
	if config.RequirePass != "S3CR3T" || strings.Contains(all, "S3CR3T") {
		t.Errorf("got %s", all)
	}
	if text, _ := config.RequirePass.MarshalText(); string(text) != "***" {
		t.Errorf("got %s", text)
	}
}

func TestLoad_WarnsOfOpenPorts(t *testing.T) {
	users := writeFile(t, "[user.a]\npassword-sha256 = \""+strings.Repeat("0", 64)+"\"\n")
	open := writeFile(t, `requirepass = "S3CR3T"`)
	for _, path := range []string{users, open} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, environ []string
		want          string
	}{
		{[]string{"--requirepass", "S3CR3T"}, nil, "list of processes"},
		{nil, []string{"REDLOCKD_REQUIREPASS=S3CR3T"}, ""},
		{[]string{"--config", open}, nil, "chmod o-r " + open},
		{[]string{"--users", users}, nil, "chmod o-r " + users},
		{[]string{"--protected-mode", "off"}, nil, "every client that reaches this port"},
		{[]string{"--protected-mode", "off"}, []string{"REDLOCKD_REQUIREPASS=S3CR3T"}, ""},
	} {
		got := strings.Join(mustLoad(t, c.args, c.environ).Warnings, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "S3CR3T") {
			t.Errorf("%q %q: warnings %q, want %q", c.args, c.environ, got, c.want)
		}
	}
}
