package configs

// Tests of the notation of masters and of hidden passwords.

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

func TestParseMaster_UnderstandsEveryForm(t *testing.T) {
	for entry, want := range map[string]Master{
		"10.0.0.1":              {Name: "10.0.0.1:6379", Network: "tcp", Address: "10.0.0.1:6379"},
		"10.0.0.1:7000":         {Name: "10.0.0.1:7000", Network: "tcp", Address: "10.0.0.1:7000"},
		"a=redis-1.example:1":   {Name: "a", Network: "tcp", Address: "redis-1.example:1"},
		"[::1]":                 {Name: "[::1]:6379", Network: "tcp", Address: "[::1]:6379"},
		"v6=[2001:db8::1]:7000": {Name: "v6", Network: "tcp", Address: "[2001:db8::1]:7000"},
		"redis://h":             {Name: "h:6379", Network: "tcp", Address: "h:6379"},
		"redis://h:7000/":       {Name: "h:7000", Network: "tcp", Address: "h:7000"},
		"redis://[::1]:7000":    {Name: "[::1]:7000", Network: "tcp", Address: "[::1]:7000"},
		"redis://u:p@h":         {Name: "h:6379", Network: "tcp", Address: "h:6379", Username: "u", Password: "p"},
		"redis://:p@h":          {Name: "h:6379", Network: "tcp", Address: "h:6379", Password: "p"},
		"b=redis://u%40x:%2C%2F%3A%40%25%3F%23=@h:1": {Name: "b", Network: "tcp", Address: "h:1", Username: "u@x", Password: ",/:@%?#="},
		"rediss://u:p@h:1":                           {Name: "h:1", Network: "tcp", Address: "h:1", Username: "u", Password: "p", TLS: &TLS{ServerName: "h"}},
		"rediss://h?ca=/c.pem&cert=/d.pem&key=/k.pem&server-name=s": {Name: "h:6379", Network: "tcp", Address: "h:6379",
			TLS: &TLS{CAFile: "/c.pem", CertFile: "/d.pem", KeyFile: "/k.pem", ServerName: "s"}},
		"unix:/run/redis@1.sock":      {Name: "unix:/run/redis@1.sock", Network: "unix", Address: "/run/redis@1.sock"},
		"s=unix:/run/a=b.sock":        {Name: "s", Network: "unix", Address: "/run/a=b.sock"},
		"unix:/r://s":                 {Name: "unix:/r://s", Network: "unix", Address: "/r://s"},
		"unix:///run/r.sock":          {Name: "unix:/run/r.sock", Network: "unix", Address: "/run/r.sock"},
		"s=unix://u:p%40@/run/r.sock": {Name: "s", Network: "unix", Address: "/run/r.sock", Username: "u", Password: "p@"},
	} {
		got, err := parseMaster(entry)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s %+v\nwant %s %+v", entry, describe(got), got.TLS, describe(want), want.TLS)
		}
	}
}

// describe shows all of a master, which Master itself refuses to.
func describe(m Master) string {
	return strings.Join([]string{m.Name, m.Network, m.Address, m.Username, string(m.Password)}, " | ")
}

func TestParseMaster_RefusesWhatItCannotMean(t *testing.T) {
	for entry, part := range map[string]string{
		"":                                  "is empty",
		"a=":                                "is empty",
		"=h":                                "has a name",
		"a b=h":                             "has a name",
		strings.Repeat("n", 65) + "=h":      "has a name",
		"h:0":                               "has a port",
		"h:65536":                           "has a port",
		"h:":                                "has a port",
		"redis://h:":                        "has a port",
		":6379":                             "has no host",
		"redis://:6379":                     "has no host",
		"6379":                              "digits that is no IP",
		"10.0.0.256:1":                      "digits that is no IP",
		"-h:1":                              "has a host",
		"hö:1":                              "punycode",
		"::1":                               "without brackets",
		"h/0":                               "neither host:port nor a URL",
		"/run/r.sock":                       "write unix: before it",
		"redis://h/0":                       "SELECT alone",
		"rediss://h/12":                     "SELECT alone",
		"redis://h?db=3":                    "SELECT alone",
		"redis://u@h":                       "incomplete login",
		"redis://u:@h":                      "incomplete login",
		"redis://@h":                        "incomplete login",
		"redis://u:p/w@h":                   "is not a URL",
		"redis://u:1/w@h":                   "is not a URL",
		"redis://u:1?w@h":                   "is not a URL",
		"redis://u:1#w@h":                   "is not a URL",
		"redis://u:p%w@h":                   "is not a URL",
		"redis://h?ca=/x":                   "only rediss:// takes",
		"rediss://h?ca=":                    "ca twice or empty",
		"rediss://h?ca=/x&ca=/y":            "ca twice or empty",
		"rediss://h?cert=/x":                "belong together",
		"rediss://h?insecure-skip-verify=1": "other than ca, cert, key and server-name",
		"http://h":                          "unknown scheme",
		"unix:r.sock":                       "not an absolute path",
		"unix:/run/":                        "is a directory",
		"unix:/a b":                         "holds a blank",
		"unix://u:p@h/run/r":                "has a host",
		"unix:///run/r?db=1":                "has a query",
	} {
		if _, err := parseMaster(entry); err == nil {
			t.Errorf("%q was accepted", entry)
		} else if !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want it to say %q", entry, err, part)
		}
	}
}

func TestMasters_AreThreeToNine(t *testing.T) {
	list := func(n int) string {
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf("h%d", i)
		}
		return strings.Join(entries, ",")
	}
	for n := 3; n <= 9; n++ { // an even number is a step of a change
		mustLoad(t, []string{"--masters", list(n)}, nil)
	}
	wantRefused(t, []string{"--embedded", "4"}, nil, "embedded = 4 masters", "survive the loss of 1, as 3 do", "must be odd", "use 3 or 5")
	wantRefused(t, []string{"--masters", list(1)}, nil, "1 master", "cannot lose one")
	wantRefused(t, []string{"--masters", list(2)}, nil, "cannot lose one")
	wantRefused(t, []string{"--masters", list(11)}, nil, "use 9 at most")
}

func TestMasters_HaveNamesAndAddressesOfTheirOwn(t *testing.T) {
	wantRefused(t, []string{"--masters", "a=h1,a=h2,h3"}, nil, "masters = a=h2:6379", "name that another one has")
	for _, list := range []string{
		"h,redis://u:S3CR3T@H:6379,x", "h:6379,b=h:06379,x", "h.,h,x", "[::1],[0:0::1]:6379,x",
		"127.0.0.1,[::ffff:127.0.0.1],x", "unix:/run/r,unix:/run//r,x",
	} {
		wantRefused(t, []string{"--masters", list}, nil, "has the address of another one")
	}
}

func TestMaster_NeverPrintsItsPassword(t *testing.T) {
	config := mustLoad(t, nil, []string{"REDLOCKD_MASTERS=a=redis://USER:S3CR3T@h1,redis://:S3CR3T@h2,unix://:S3CR3T@/run/r"})
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "masters", config.Masters, "one", config.Masters[0])
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "masters", config.Masters, "one", config.Masters[0])
	text := log.String() + string(encoded) + showMasters(&config)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text += fmt.Sprintf(verb, config) + fmt.Sprintf(verb, config.Masters) + fmt.Sprintf(verb, &config.Masters[0])
	}
	if strings.Contains(text, "S3CR3T") || strings.Contains(text, fmt.Sprintf("%x", "S3CR3T")) {
		t.Errorf("a password is shown in %s", text)
	}
	for _, name := range []string{"a=h1:6379", "h2:6379", "unix:/run/r"} {
		if !strings.Contains(text, name) {
			t.Errorf("%q is not shown in %s", name, text)
		}
	}
}

// leaks are spellings in which a mistake puts a password, or half of it, where
// an error would show it.
var leaks = []string{
	"redis://u:S3CR3T,x@h", "redis://u:x,S3CR3T@h", "redis://u:x,S3CR3T,y@h", "redis://u:x@y,S3CR3T z,w@h", "redis://S3CR3T@h",
	"redis://u:S3CR3T/x@h", "redis://u:x/S3CR3T@h", "redis://u:1/S3CR3T@h", "redis://u:1?S3CR3T@h", "redis://u:1#S3CR3T@h",
	"redis://u:%S3CR3T@h", "redis://u:S3CR3T@h:x", "redis://u:S3CR3T@h/0", "u:S3CR3T@h:1", "a=u:S3CR3T@h:1", "redis:u:S3CR3T@h",
	"redis://u:S3CR3T", "redis://u:1?S3CR3T", "redis://u:x@S3CR3T@h", "redis://u:x@S3CR3T/y@h", "valkey://u:S3CR3T@h", "unix://u:S3CR3T@h/run",
	"unix://u:S3CR3T@run", "u=S3CR3T://x@h", "u:S3CR3T://x@h",
}

func TestLoad_NeverShowsAPasswordInAnError(t *testing.T) {
	for _, entry := range leaks {
		for _, args := range [][]string{
			{"--masters", "a,b," + entry}, {"--masters", entry}, {"-masters=" + entry}, {"--=" + entry}, {"--mastres=" + entry},
			{"--masters", "a", entry}, {"--" + entry}, {"--config", writeFile(t, `masters = ["a", "`+entry+`"]`)},
			{"--config", writeFile(t, `masters = "a" "`+entry+`"`)}, {"--config", writeFile(t, `"`+entry+`" = 1`)},
		} {
			_, err := Load(args, []string{"REDLOCKD_MASTRES=" + entry})
			if err == nil {
				t.Errorf("%q was accepted", args)
			} else if strings.Contains(err.Error(), "S3CR3T") {
				t.Errorf("%q: the password is shown: %v", args, err)
			}
		}
	}
}

// FuzzParseMaster: no entry breaks the parser, and what it accepts is valid,
// does not show its password and is understood alike when written again.
func FuzzParseMaster(f *testing.F) {
	for _, entry := range append(leaks, "h", "a=h:1", "[::1]:1", "rediss://h?ca=/x", "unix:/r", "unix://u:p@/r", "redis://u:p%40@h:1") {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		master, err := parseMaster(entry)
		if err != nil {
			return
		}
		if text := checkMaster(master); text != nil {
			t.Fatalf("%q was accepted as %s, which %s", entry, describe(master), text)
		}
		// A host called unix is the one address that reads as something else.
		if master.Username == "" && master.Password == "" && master.TLS == nil && master.Address != "unix:6379" {
			again, err := parseMaster(master.String())
			if err != nil || again != master {
				t.Fatalf("%q: %s was read again as %s, %v", entry, describe(master), describe(again), err)
			}
		}
	})
}

// FuzzMasters_NeverShowAPassword puts anything around a secret.
func FuzzMasters_NeverShowAPassword(f *testing.F) {
	for _, around := range [][2]string{{"", ""}, {"x,", ",y"}, {"x@", "/"}, {"1?", ":1"}, {"#", "%"}, {" ", "="}, {"x@y,a=", ", "}} {
		f.Add(around[0], around[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+"S3CR3T"+after, "://") {
			return // another URL behind a comma is another master, rightly shown
		}
		var config Config
		masters := option{name: "masters", value: masterList(&config)}
		text := "redis://user:" + before + "S3CR3T" + after + "@host:1"
		for _, p := range masters.explain(masters.set(text), text, given{}) {
			if strings.Contains(p.Error(), "S3CR3T") {
				t.Fatalf("shown: %+v", p)
			}
		}
		for _, master := range config.Masters {
			if strings.Contains(master.String(), "S3CR3T") {
				t.Fatalf("shown: %s", master)
			}
		}
	})
}

func TestTLS_LoadNamesTheFileThatCannotBeUsed(t *testing.T) {
	empty := writeFile(t, "nothing")
	for _, config := range []TLS{{CAFile: "/does/not/exist"}, {CAFile: empty}, {CertFile: empty, KeyFile: empty}} {
		_, err := config.Load()
		if err == nil || !strings.Contains(err.Error(), config.CAFile+config.CertFile) {
			t.Errorf("%+v: %v", config, err)
		}
	}
	config, err := TLS{}.Load()
	if err != nil || config.InsecureSkipVerify || config.MinVersion == 0 {
		t.Errorf("got %+v, %v", config, err)
	}
	if errors.Is(err, ErrInvalid) {
		t.Error("a file that cannot be read is no wrong setting")
	}
}

func TestRedactArgs_HidesEveryValueThatMayHoldAPassword(t *testing.T) {
	args := []string{"redlockd", "--masters", "redis://u:S3CR3T@a,b,c", "--masters=redis://u:S3CR3T@d", "--requirepass", "S3CR3T", "--otlp-endpoint=http://u:S3CR3T@c", "--group", "g", "--pprof"}
	want := "redlockd --masters *** --masters=*** --requirepass *** --otlp-endpoint=*** --group g --pprof"
	if got := strings.Join(RedactArgs(args), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLoad_FollowToNamesANetworkOrADomain(t *testing.T) {
	for value, says := range map[string]string{
		"*:6379":            "allows every host",
		"*.*:6379":          "allows every host",
		"10.0.0.1":          "is no address with a port",
		"10.0.0.?:6379":     "holds a character that no address has",
		"10.0.0.1:6379,b:*": "",
		"*.example.net:*":   "",
	} {
		if args := []string{"--masters", "a:1,b:2,c:3", "--follow-to", value}; says != "" {
			wantRefused(t, args, nil, says)
		} else if got := mustLoad(t, args, nil).FollowTo; strings.Join(got, ",") != value {
			t.Errorf("%s is read as %q", value, got)
		}
	}
}
