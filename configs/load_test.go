package configs

// Tests of the sources of settings and of the errors for wrong ones.

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writeFile makes a file that only this user may read.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, args, environ []string) Config {
	t.Helper()
	config, err := Load(args, environ)
	if err != nil {
		t.Fatalf("Load(%q, %q) = %v", args, environ, err)
	}
	return config
}

// wantRefused loads and expects an error that holds every one of the parts.
func wantRefused(t *testing.T, args, environ []string, parts ...string) {
	t.Helper()
	_, err := Load(args, environ)
	if err == nil {
		t.Fatalf("Load(%q, %q) accepted", args, environ)
	}
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("Load(%q, %q) = %v, which is no ErrInvalid", args, environ, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Load(%q, %q) =\n%v\nwhich does not say %q", args, environ, err, part)
		}
	}
}

func TestLoad_WithoutSettingsGivesTheDefaults(t *testing.T) {
	config := mustLoad(t, nil, []string{"PATH=/bin", "HOME=/root"})
	if !reflect.DeepEqual(config, Default()) {
		t.Errorf("got %+v, want %+v", config, Default())
	}
}

func TestDefault_IsValid(t *testing.T) {
	config := Default()
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

func TestLoad_PrefersFlagsToEnvironmentToFile(t *testing.T) {
	path := writeFile(t, "max-ttl = \"1s\"\nmaster-timeout = \"11ms\"\ngroup = \"file\"\n")
	environ := []string{"REDLOCKD_MAX_TTL=2s", "REDLOCKD_MASTER_TIMEOUT=12ms", "REDLOCKD_CONFIG=" + path}
	config := mustLoad(t, []string{"--max-ttl", "3s"}, environ)
	if config.MaxTTL != 3*time.Second {
		t.Errorf("max-ttl is %s, the flag says 3s", config.MaxTTL)
	}
	if config.MasterTimeout != 12*time.Millisecond {
		t.Errorf("master-timeout is %s, the environment says 12ms", config.MasterTimeout)
	}
	if config.Group != "file" {
		t.Errorf("group is %s, the file says file", config.Group)
	}
	if config.File != path {
		t.Errorf("file is %q, want %q", config.File, path)
	}
}

func TestLoad_PrefersTheFileOfTheFlagToThatOfTheEnvironment(t *testing.T) {
	one, two := writeFile(t, `group = "one"`), writeFile(t, `group = "two"`)
	config := mustLoad(t, []string{"--config", one}, []string{"REDLOCKD_CONFIG=" + two})
	if config.Group != "one" || config.File != one {
		t.Errorf("group %q came from %q", config.Group, config.File)
	}
}

// Every option is given once in each of the three ways; the outcome must be
// the same configuration, and differ from the default in every option.
func TestLoad_ReadsEveryOptionAlikeFromAllThreeSources(t *testing.T) {
	users := writeFile(t, "[user.a]\npassword-sha256 = \""+strings.Repeat("0", 64)+"\"\n")
	values := map[string]string{
		"unix-mode": "0770", "max-clients-per-address": "10", "max-connects": "9", "unauthenticated-memory": "300000", "max-memory-clients": "1048577", "client-output-limit": "300001", "max-subscriptions": "22", "requirepass": "secret", "users": users, "protected-mode": "off",
		"tls-cert": "/c", "tls-key": "/k", "tls-ca": "/a", "tls-client-auth": "required",
		"listen": "tls:127.0.0.1:1,unix:/run/r.sock", "max-clients": "11", "cluster-announce": "10.0.0.1:3", "max-operations": "12", "drain-grace": "14s", "drain-timeout": "13s",
		"masters": "a:1,n=b:2,redis://u:p@c:3", "group": "g", "databases": "14", "key-prefix": "p:", "key-prefixes": "p:,q:", "follow-to": "10.0.0.*:1,b:2",
		"master-timeout": "15ms", "restart-guard": "off", "bootstrap": "true",
		"max-ttl": "16s", "max-keep": "17s", "max-wait": "18s", "max-hold": "22s", "max-waiters": "19", "max-waiters-per-key": "20", "client-timeout": "21s", "ids-durability": "off", "assume-durable": "true", "log-level": "debug", "log-format": "json",
		"admin-listen": "127.0.0.1:2", "metrics-prefixes": "orders:,jobs:", "pprof": "true", "lock-info": "true", "fair-keys": "queue:*", "otlp-endpoint": "http://c:4318", "otlp-sample": "0.5", "compat-test": "true", "long-ttl": "clamp", "no-ttl": "lease", "script-class": strings.Repeat("a", 40) + "=release",
	}
	var args, environ, lines []string
	for _, option := range options(new(Config)) {
		value, ok := values[option.name]
		if !ok && !slices.Contains([]string{"embedded", "masters-file", "config"}, option.name) {
			t.Fatalf("give option %s a value in this test", option.name)
		}
		if ok {
			args = append(args, "--"+option.name+"="+value)
			environ = append(environ, variable(option.name)+"="+value)
			lines = append(lines, option.name+` = "`+value+`"`)
		}
	}
	flags := mustLoad(t, args, nil)
	variables := mustLoad(t, nil, environ)
	file := mustLoad(t, []string{"--config", writeFile(t, strings.Join(lines, "\n"))}, nil)
	flags.Warnings, variables.Warnings, file.Warnings, file.File = nil, nil, nil, ""
	flags.BootstrapWarning, variables.BootstrapWarning, file.BootstrapWarning = "", "", ""
	if !reflect.DeepEqual(flags, variables) || !reflect.DeepEqual(flags, file) {
		t.Errorf("flags       %+v\nenvironment %+v\nfile        %+v", flags, variables, file)
	}
	defaults := Default()
	before := options(&defaults)
	for i, option := range options(&flags) {
		if _, ok := values[option.name]; ok && option.show() == before[i].show() {
			t.Errorf("option %s did not arrive", option.name)
		}
	}
}

func TestLoad_ReadsTOMLsOwnNumbersTruthValuesAndArrays(t *testing.T) {
	path := writeFile(t, "max-ttl = \"30s\"\nmax-clients = 7\nbootstrap = true\nlisten = [\":1\", \":2\"]\nmasters = [\"a\", \"b\", \"c\"]\n")
	config := mustLoad(t, []string{"--config=" + path}, nil)
	if config.MaxTTL != 30*time.Second || config.MaxClients != 7 || !config.Bootstrap || len(config.Listen) != 2 || len(config.Masters) != 3 {
		t.Errorf("got %+v", config)
	}
}

func TestLoad_RefusesADurationWithoutAUnitAndNamesBothReadings(t *testing.T) {
	path := writeFile(t, "group = \"g\"\nmax-ttl = 30\n")
	wantRefused(t, []string{"--max-ttl", "30"}, nil, `max-ttl = "30" (from --max-ttl): has no unit; allowed: 10ms to 24h; write 30s or 30ms`)
	wantRefused(t, nil, []string{"REDLOCKD_MAX_TTL=1500"}, `max-ttl = "1500" (from REDLOCKD_MAX_TTL): has no unit`, "write 1500s or 1500ms")
	wantRefused(t, []string{"--config", path}, nil, "max-ttl = 30 (from "+path+", line 2): has no unit", "write 30s or 30ms")
	wantRefused(t, []string{"--max-ttl", "1m30"}, nil, "write 1m30s or 1m30ms")
	wantRefused(t, []string{"--max-ttl", "1.5"}, nil, "write 1.5s or 1.5ms")
	wantRefused(t, []string{"--max-ttl", "-5"}, nil, "write -5s or -5ms")
	// 0 has one reading.
	if config := mustLoad(t, []string{"--client-timeout", "0"}, nil); config.ClientTimeout != 0 {
		t.Errorf("client-timeout is %s", config.ClientTimeout)
	}
}

func TestLoad_RefusesAVariableWithTheProgramsNameThatIsNoOption(t *testing.T) {
	for _, c := range []struct{ key, nearest string }{
		{"REDLOCK_MAX_TTL", "REDLOCKD_MAX_TTL"}, {"REDLOCKD_MAX_TLL", "REDLOCKD_MAX_TTL"}, {"REDLOCKMASTERS", "REDLOCKD_MASTERS"},
		{"REDLOCKDGROUP", "REDLOCKD_GROUP"}, {"REDLOCKD__GROUP", "REDLOCKD_GROUP"}, {"REDLOCKD_", "REDLOCKD_"}, {"REDLOCKD_KEY-PREFIX", "REDLOCKD_KEY_PREFIX"},
	} {
		wantRefused(t, nil, []string{c.key + "=1"}, c.key+": is no option", "the nearest one is "+c.nearest)
	}
	mustLoad(t, nil, []string{"REDIS_URL=x", "MY_REDLOCK_TTL=1", "REDLOC=1"})
}

func TestLoad_CollectsRepeatedAndCommaSeparatedLists(t *testing.T) {
	config := mustLoad(t, []string{"--listen", ":1, :2", "--listen", "[::1]:3", "--masters=a,b", "--masters=c"}, nil)
	if got := strings.Join(config.Listen, " "); got != ":1 :2 [::1]:3" {
		t.Errorf("listen is %q", got)
	}
	if len(config.Masters) != 3 {
		t.Errorf("masters are %v", config.Masters)
	}
}

func TestLoad_ReadsMastersFromAFile(t *testing.T) {
	path := writeFile(t, "# the group\na:1\n\n n=b:2\nredis://u:p%2Cq@c:3")
	for _, config := range []Config{
		mustLoad(t, []string{"--masters-file", path}, nil),
		mustLoad(t, nil, []string{"REDLOCKD_MASTERS_FILE=" + path}),
		mustLoad(t, []string{"--config", writeFile(t, "masters-file = \""+path+"\"")}, nil),
	} {
		if len(config.Masters) != 3 || config.Masters[1].Name != "n" || config.Masters[2].Password != "p,q" || config.Embedded != 0 {
			t.Errorf("masters are %v beside %d embedded ones", config.Masters, config.Embedded)
		}
	}
	wantRefused(t, []string{"--masters-file", path, "--masters", "a,b,c"}, nil, "masters-file", "cannot be combined with masters")
	wantRefused(t, []string{"--masters-file", "/does/not/exist"}, nil, "masters-file = \"/does/not/exist\"", "cannot be read: no such file")
	wantRefused(t, []string{"--masters-file", writeFile(t, "# nothing\n")}, nil, "names no master")
	wantRefused(t, []string{"--masters-file", writeFile(t, "a\nb\n")}, nil, "2 masters", "cannot lose one")
	for _, bad := range []string{"redis://u:S3CR3T@a:x\nb\nc", "u:S3CR3T@a\nb\nc"} {
		if _, err := Load([]string{"--masters-file", writeFile(t, bad)}, nil); err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLoad_SetsEmbeddedToNoneWhenMastersAreGiven(t *testing.T) {
	if config := mustLoad(t, []string{"--masters", "a,b,c"}, nil); config.Embedded != 0 {
		t.Errorf("%d embedded masters beside real ones", config.Embedded)
	}
	wantRefused(t, []string{"--masters", "a,b,c", "--embedded", "3"}, nil, "embedded = 3 (from --embedded)", "cannot be combined")
}

func TestLoad_AnswersHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]error{"--help": ErrHelp, "-h": ErrHelp, "--version": ErrVersion} {
		if _, err := Load([]string{flag}, nil); !errors.Is(err, want) || errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestLoad_NamesTheNearestOptionForAnUnknownName(t *testing.T) {
	file := writeFile(t, "max_tll = 1\n[server]\nx = 1\n")
	wantRefused(t, []string{"--mastres", "a"}, nil, "--mastres: is no option", "--masters")
	wantRefused(t, []string{"-group", "a"}, nil, "-group: is no option", "--group")
	wantRefused(t, []string{"-group=a"}, nil, "-group: is no option", "--group")
	wantRefused(t, nil, []string{"REDLOCKD_MAXTTL=1"}, "REDLOCKD_MAXTTL: is no option", "REDLOCKD_MAX_TTL")
	wantRefused(t, nil, []string{"REDLOCKD_max_ttl=1"}, "REDLOCKD_max_ttl: is no option", "REDLOCKD_MAX_TTL")
	wantRefused(t, []string{"--config", file}, nil, "max_tll (from "+file+", line 1): is no option", "max-ttl", "server (from "+file+", line 2)")
}

func TestLoad_IgnoresWhatKubernetesSetsForAServiceOfOurName(t *testing.T) {
	mustLoad(t, nil, []string{
		"REDLOCKD_SERVICE_HOST=10.0.0.1", "REDLOCKD_SERVICE_PORT=7379", "REDLOCKD_SERVICE_PORT_RESP=7379",
		"REDLOCKD_PORT=tcp://10.0.0.1:7379", "REDLOCKD_PORT_7379_TCP=tcp://10.0.0.1:7379",
		"REDLOCKD_PORT_7379_TCP_PROTO=tcp", "REDLOCKD_PORT_7379_TCP_PORT=7379", "REDLOCKD_PORT_7379_TCP_ADDR=10.0.0.1",
		"REDLOCKD_EU_SERVICE_HOST=10.0.0.2", "REDLOCK_SERVICE_HOST=10.0.0.3", "REDLOCK_MASTERS_PORT_6379_TCP=tcp://10.0.0.3:6379",
	})
	for _, option := range options(new(Config)) {
		if clusterPattern.MatchString(variable(option.name)) {
			t.Errorf("a wrong variable near %s would go unnoticed", variable(option.name))
		}
	}
}

func TestLoad_RefusesAnEmptyValueSoThatNothingFallsBackToEmbeddedMasters(t *testing.T) {
	wantRefused(t, nil, []string{"REDLOCKD_MASTERS="}, "masters (from REDLOCKD_MASTERS): is empty")
	wantRefused(t, []string{"--config="}, nil, "config", "is empty")
	wantRefused(t, []string{"--config", writeFile(t, "masters = []")}, nil, "masters", "is empty")
	mustLoad(t, nil, []string{"REDLOCKD_KEY_PREFIX="})
}

func TestLoad_JoinsEverythingThatIsWrong(t *testing.T) {
	wantRefused(t, []string{"--max-ttl", "5x", "--embedded", "4"}, []string{"REDLOCKD_DATABASES=0", "REDLOCKD_NO=1"},
		`max-ttl = "5x" (from --max-ttl): is not a duration; allowed: 10ms to 24h`,
		"embedded = 4 masters (from --embedded): survive the loss of 1, as 3 do", "use 3 or 5",
		"databases = 0 (from REDLOCKD_DATABASES): is too small; allowed: 1 to 256",
		"REDLOCKD_NO: is no option")
}

func TestLoad_ObjectsOnceToAValueThatCannotBeRead(t *testing.T) {
	for _, option := range options(new(Config)) {
		_, err := Load(nil, []string{variable(option.name) + "="})
		if option.name == "key-prefix" {
			continue
		}
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", option.name, err)
		}
	}
}

func TestLoad_AcceptsBothEndsOfEveryRangeAndNothingBeyond(t *testing.T) {
	ranges := 0
	for _, option := range options(new(Config)) {
		least, most, found := strings.Cut(option.allowed, " to ")
		beyond := func(end string, by int) string {
			if d, err := time.ParseDuration(end); err == nil {
				return (d + time.Duration(by)*time.Millisecond).String()
			}
			n, _ := strconv.Atoi(end)
			return strconv.Itoa(n + by)
		}
		if !found || strings.Contains(most, " ") {
			continue
		}
		ranges++
		for value, valid := range map[string]bool{least: true, most: true, beyond(least, -1): false, beyond(most, 1): false} {
			if _, err := Load([]string{"--" + option.name + "=" + value}, nil); (err == nil) != valid {
				t.Errorf("--%s=%s: %v", option.name, value, err)
			}
		}
	}
	if ranges != 20 {
		t.Errorf("%d options have a range", ranges)
	}
}

func TestLoad_ReportsWhyAFileCannotBeUsed(t *testing.T) {
	large := writeFile(t, strings.Repeat("#", maxFileSize+1))
	wantRefused(t, []string{"--config", "/does/not/exist"}, nil, `config = "/does/not/exist" (from --config)`, "no such file")
	wantRefused(t, []string{"--config", writeFile(t, "group = \"a\"\nmax-ttl = = 1\n")}, nil, "line 2, column 11")
	wantRefused(t, []string{"--config", writeFile(t, `config = "other.toml"`)}, nil, "config", "cannot be set in a file")
	wantRefused(t, []string{"--config", large}, nil, "too large")
}

func TestLoad_RefusesValuesOfAnotherKind(t *testing.T) {
	for line, part := range map[string]string{
		"max-ttl = 1.5":                                   "is a number with a fraction and not a duration",
		"max-ttl = true":                                  "is a truth value and not a duration",
		"max-ttl = 99999999999999999":                     "has no unit",
		"max-ttl = \"99999999999999999s\"":                "is not a duration",
		"max-ttl = 1979-05-27T07:32:00Z":                  "is a date or time",
		"max-clients = \"ten\"":                           "is not a whole number",
		"max-clients = \"+10\"":                           "is not a whole number",
		"max-clients = [1]":                               "is an array and not a whole number",
		"group = 5":                                       "is a whole number and not text in quotes",
		"bootstrap = \"yes\"":                             "is neither true nor false",
		"bootstrap = 1":                                   "is a whole number and neither true nor false",
		"masters = [\"a\", 5]":                            "holds a whole number as entry 2",
		"masters = 5":                                     "is a whole number and neither text nor an array",
		"[listen]\naddress = \":1\"":                      "is a table and neither text nor an array",
		"restart-guard = \"loose\"":                       "is none of its words; allowed: strict, off",
		"log-level = \"trace\"":                           "allowed: debug, info, warn, error",
		"log-format = \"xml\"":                            "allowed: text, json",
		"max-ttl = \"24h1ms\"":                            "is too long",
		"max-ttl = \"9ms\"":                               "is too short",
		"max-ttl = \"10.5ms\"":                            "is not a whole number of milliseconds",
		"master-timeout = \"5001ms\"":                     "allowed: 10ms to 5s",
		"max-operations = 10000001":                       "is too large",
		"group = \"two words\"":                           "is not a name",
		"key-prefix = \"a\\nb\"":                          "holds a blank or a control character",
		"embedded = 11":                                   "use 9 at most",
		"embedded = 1":                                    "cannot lose one",
		"key-prefix = \"" + strings.Repeat("k", 65) + `"`: "has 65 bytes, too many; allowed: 0 to 64 bytes",
	} {
		wantRefused(t, []string{"--config", writeFile(t, line)}, nil, part)
	}
}

func TestLoad_RefusesWordsThatBelongToNoOption(t *testing.T) {
	wantRefused(t, []string{"--masters", "a,b", "redis://u:S3CR3T@c"}, nil, "commas without blanks")
	wantRefused(t, []string{"--max-ttl"}, nil, "--max-ttl: has no value")
	wantRefused(t, []string{"--version=maybe"}, nil, "cannot be read")
}

func TestLoad_RefusesListenersThatCannotExist(t *testing.T) {
	for address, part := range map[string]string{
		"7379": "not of that form", ":70000": "port that is not a number", ":x": "port that is not a number",
		"*:7379": "has a host", "a b:1": "has a host", "unix:run/r": "not an absolute path", "unix:/run/": "is a directory",
		"unix:/" + strings.Repeat("x", 103): "at most 103", "::1:7379": "not of that form", ":1,:1": "is given twice", ":1,": "not of that form",
	} {
		wantRefused(t, []string{"--listen", address}, nil, "listen = ", part, "from --listen", "allowed: host:port")
	}
	mustLoad(t, []string{"--listen", "127.0.0.1:0,127.0.0.1:0,[::1]:7379,localhost:1,unix:/run/r.sock"}, nil)
}

func TestLoad_TestSuitesAreServedOnThisMachineAlone(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0,localhost:1", "127.0.0.2:1,unix:/run/r.sock"} {
		if config := mustLoad(t, []string{"--compat-test", "--listen", address}, nil); !config.CompatTest || !strings.Contains(strings.Join(config.Warnings, " "), "never in production") {
			t.Errorf("%s: warnings %q", address, config.Warnings)
		}
	}
	for _, address := range []string{":0", "0.0.0.0:1", "10.0.0.1:1", "locks.example.com:1", "127.0.0.1:1,[::]:1", "tls:[fe80::1]:1"} {
		wantRefused(t, []string{"--compat-test", "--listen", address}, nil, "compat-test = true (from --compat-test): is refused while listen has", "127.0.0.1")
	}
}

func TestValidate_FindsWhatWasPutTogetherByHand(t *testing.T) {
	config := Default()
	config.Listen, config.MaxTTL, config.Group = nil, 0, ""
	config.Embedded = 0
	config.Masters = []Master{{Name: "a", Network: "udp", Address: "h:1"}, {Name: "b,c", Network: "tcp", Address: "h:1"}, {Name: "d", Network: "tcp", Address: "h"}}
	err := config.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"no client could connect", `max-ttl = 0s`, `group = ""`, "has a network", "has a name", "not host:port"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoes not say %q", err, part)
		}
	}
}

func TestFieldError_IsFoundInTheJoinedError(t *testing.T) {
	_, err := Load([]string{"--databases", "0"}, nil)
	var field *FieldError
	if !errors.As(err, &field) || field.Field != "databases" || field.Value != "0" || field.Source != "--databases" || field.Allowed != "1 to 256" || field.Advice == "" {
		t.Errorf("got %+v", field)
	}
}

func TestSettings_ShowsWhatIsInForceWithoutPasswords(t *testing.T) {
	config := mustLoad(t, []string{"--masters", "redis://u:S3CR3T@a,b,c", "--max-ttl", "5s"}, nil)
	want := [][2]string{{"max-ttl", "5s"}, {"max-keep", "10m"}}
	if got := config.Settings("max-[tk]*"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := config.Settings("masters"); len(got) != 1 || got[0][1] != "a:6379,b:6379,c:6379" {
		t.Errorf("got %q", got)
	}
	if got := config.Settings("*"); len(got) != len(options(new(Config))) {
		t.Errorf("* shows %d of %d options", len(got), len(options(new(Config))))
	}
	if got := config.Settings("["); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestLoad_TracesGoToAURLThatHoldsNoSecret(t *testing.T) {
	for _, good := range []string{"http://127.0.0.1:4318", "https://c.example.com/otlp/v1/traces"} {
		if config := mustLoad(t, []string{"--otlp-endpoint", good, "--otlp-sample", "1"}, nil); config.OTLPEndpoint != good || config.OTLPSample != 1 {
			t.Errorf("%q, %v", config.OTLPEndpoint, config.OTLPSample)
		}
	}
	for _, bad := range []string{"127.0.0.1:4318", "grpc://c:4317", "http://", "http://c:4318/?a=b", "http://%zz"} {
		wantRefused(t, []string{"--otlp-endpoint", bad}, nil, "otlp-endpoint", "http://127.0.0.1:4318")
	}
	wantRefused(t, []string{"--otlp-endpoint", "http://u:S3CR3T@c:4318"}, nil, "otlp-endpoint", "has a user or a password", "collector on this machine")
	if _, err := Load([]string{"--otlp-endpoint", "http://u:S3CR3T@c:4318"}, nil); strings.Contains(err.Error(), "S3CR3T") {
		t.Error(err)
	}
	for _, bad := range []string{"-0.1", "1.1", "half", "NaN"} {
		wantRefused(t, nil, []string{"REDLOCKD_OTLP_SAMPLE=" + bad}, "otlp-sample", "0 to 1", bad)
	}
	config := mustLoad(t, []string{"--config", writeFile(t, "otlp-sample = 0.25\n")}, nil)
	if config.OTLPSample != 0.25 {
		t.Errorf("the file's share is %v", config.OTLPSample)
	}
}
