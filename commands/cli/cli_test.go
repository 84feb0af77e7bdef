// Tests of the job that a command line names and of how the process ends.

package cli

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"redlockd/configs"
)

func TestParse_TakesTheCommandLineApart(t *testing.T) {
	for line, want := range map[string]CommandLine{
		"":                                   {Args: []string{}},
		"--masters a,b,c":                    {Args: []string{"--masters", "a,b,c"}},
		"bootstrap --masters a,b,c":          {Word: "bootstrap", Args: []string{"--masters", "a,b,c"}},
		"bootstrap --force --masters a,b,c":  {Word: "bootstrap", Force: true, Args: []string{"--masters", "a,b,c"}},
		"bootstrap --masters a,b,c --force":  {Word: "bootstrap", Force: true, Args: []string{"--masters", "a,b,c"}},
		"bootstrap --masters a -- --force":   {Word: "bootstrap", Args: []string{"--masters", "a", "--", "--force"}},
		"--masters a --force":                {Args: []string{"--masters", "a", "--force"}},
		"check --masters a,b,c":              {Word: "check", Args: []string{"--masters", "a,b,c"}},
		"check --performance --masters a":    {Word: "check", Performance: true, Args: []string{"--masters", "a"}},
		"check --masters a -- --performance": {Word: "check", Args: []string{"--masters", "a", "--", "--performance"}},
		"bootstrap --once --masters a":       {Word: "bootstrap", Once: true, Args: []string{"--masters", "a"}},
		"bootstrap --aged b --masters a":     {Word: "bootstrap", Aged: "b", Args: []string{"--masters", "a"}},
		"bootstrap --masters a --aged=b":     {Word: "bootstrap", Aged: "b", Args: []string{"--masters", "a"}},
		"bootstrap --masters a -- --aged b":  {Word: "bootstrap", Args: []string{"--masters", "a", "--", "--aged", "b"}},
		"reconfigure --performance":          {Word: "reconfigure", Args: []string{"--performance"}},
		"reconfigure --force --masters a":    {Word: "reconfigure", Force: true, Args: []string{"--masters", "a"}},
		"reconfigure --wait --masters a":     {Word: "reconfigure", Wait: true, Args: []string{"--masters", "a"}},
		"masters remove c --wait":            {Word: "masters", Wait: true, Args: []string{}, Leave: []string{"c"}},
		"masters add d=e:1 f=e:2 --force --masters a": {Word: "masters", Force: true, Args: []string{"--masters", "a"}, Join: []configs.Master{
			{Name: "d", Network: "tcp", Address: "e:1"}, {Name: "f", Network: "tcp", Address: "e:2"}}},
		"masters add d=e:1 --absent --wait": {Word: "masters", Absent: true, Wait: true, Args: []string{}, Join: []configs.Master{{Name: "d", Network: "tcp", Address: "e:1"}}},
		"reconfigure --absent --masters a":  {Word: "reconfigure", Absent: true, Args: []string{"--masters", "a"}},
		"quarantine b --force --masters a":  {Word: "quarantine", Master: "b", Force: true, Args: []string{"--masters", "a"}},
		"quarantine --force b":              {Word: "quarantine", Master: "b", Force: true, Args: []string{}},
		"masters remove d e":                {Word: "masters", Leave: []string{"d", "e"}, Args: []string{}},
		"masters replace c d=e:1 --group g": {Word: "masters", Leave: []string{"c"}, Join: []configs.Master{{Name: "d", Network: "tcp", Address: "e:1"}}, Args: []string{"--group", "g"}},
		"masters --help":                    {Word: "masters", Args: []string{"--help"}},
		"slots":                             {Word: "slots", Args: []string{}},
		"slots --config f --connect a,b":    {Word: "slots", Args: []string{"--config", "f"}, Daemons: connection{connect: []string{"a", "b"}}},
		"slots move 0-9 --to g2 --config f": {Word: "slots", Args: []string{"--config", "f"}, Ranges: "0-9", To: "g2"},
		"slots move 0-9 --config f --to=g2": {Word: "slots", Args: []string{"--config", "f"}, Ranges: "0-9", To: "g2"},
		"quarantine b --masters a,b,c":      {Word: "quarantine", Master: "b", Args: []string{"--masters", "a,b,c"}},
		"quarantine --masters a,b,c":        {Word: "quarantine", Args: []string{"--masters", "a,b,c"}},
		"quarantine":                        {Word: "quarantine", Args: []string{}},
		"lock --force k -- true":            {Word: "lock", Args: []string{"--force", "k", "--", "true"}},
		"version":                           {Word: "version", Args: []string{}},
		"help":                              {Word: "help", Args: []string{}},
		"help lock":                         {Word: "lock", Args: []string{"--help"}},
		"help top":                          {Word: "top", Args: []string{"--help"}},
		"help hash-password":                {Word: "hash-password", Args: []string{"--help"}},
		"help check":                        {Word: "help", About: "check"},
	} {
		got, err := Parse(strings.Fields(line))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", line, got, err, want)
		}
	}
}

func TestParse_RefusesWhatDoesNotGoWithAged(t *testing.T) {
	for line, part := range map[string]string{
		"bootstrap --aged":                               "--aged needs a master",
		"bootstrap --aged= --masters a":                  "--aged needs a master",
		"bootstrap --aged --masters a":                   "--aged needs a master",
		"bootstrap --once --force --masters a":           "takes none of --force, --fence-above and --aged",
		"bootstrap --once --aged b --masters a":          "takes none of --force, --fence-above and --aged",
		"bootstrap --once --fence-above 7 --masters a":   "takes none of --force, --fence-above and --aged",
		"bootstrap --aged b --force --masters a":         "takes neither --force nor --fence-above",
		"bootstrap --aged b --fence-above 7 --masters a": "takes neither --force nor --fence-above",
	} {
		if _, err := Parse(strings.Fields(line)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", line, err, part)
		}
	}
}

func TestParse_RefusesAChangeOfMastersThatIsNone(t *testing.T) {
	for line, part := range map[string]string{
		"masters add":                           "masters takes no words, or its change before its options: redlockd masters add NAME=ADDRESS",
		"masters d=e:1 --masters a":             "masters takes no words, or its change",
		"masters remove --masters a,b,c":        "masters takes no words, or its change",
		"masters replace c --masters a,b,c":     "masters takes no words, or its change",
		"masters replace c d=e:1 f=e:2":         "masters takes no words, or its change",
		"masters add d=e:x --masters a":         "has a port that is not a number",
		"masters add d=u:S3CR3T@e:1":            "has a login without a scheme before it",
		"masters add d=redis://u:S3CR3T@e:none": "masters = entry 1",
	} {
		_, err := Parse(strings.Fields(line))
		if Report(io.Discard, err) != ExitUsage || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v, want %q", line, err, part)
		}
	}
}

func TestParse_RefusesUnknownWords(t *testing.T) {
	for line, part := range map[string]string{
		"locks":                "locks is no command, the nearest one is lock; allowed: bootstrap, check, reconfigure, masters, slots, quarantine, lock, top, hash-password, version, help",
		"redis://u:S3CR3T@h:1": "the first word is no command, the nearest one is",
		"version --masters a":  "version takes no further words",
		"slots 0-9 --to g2":    "slots takes no words, or move RANGES --to GROUP, before its options",
		"slots move --to g2":   "slots takes no words, or move RANGES --to GROUP",
		"slots move 0-9":       "slots takes no words, or move RANGES --to GROUP",
		"slots move 0-9 --to":  "slots takes no words, or move RANGES --to GROUP",
		"slots --to g2":        "slots takes no words, or move RANGES --to GROUP",
		"slots moves 0 --to g": "slots takes no words, or move RANGES --to GROUP",
		"man lock":             "man takes no further words",
		"help me":              "me is no command, the nearest one is ",
		"help dlock":           "dlock is a command of clients, not of this program; a daemon describes it: redis-cli -p 7379 COMMAND DOCS DLOCK",
		"DINFO":                "DINFO is a command of clients",
		"help lock check":      "help takes one command at most",
	} {
		_, err := Parse(strings.Fields(line))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v, want %q", line, err, part)
		}
	}
}

// recorder is an App that records the jobs that it runs.
type recorder struct {
	App
	out    strings.Builder
	did    string
	config configs.Config

	fenceAbove int64
}

func record(environ ...string) *recorder {
	r := &recorder{}
	r.App = App{
		Environ: environ, Out: &r.out, Build: "redlockd v9",
		Serve: func(_ context.Context, config configs.Config) error {
			r.did, r.config = "serve", config
			return nil
		},
		Jobs: map[string]Job{},
	}
	for _, word := range []string{"bootstrap", "check", "reconfigure", "masters", "quarantine"} {
		r.Jobs[word] = func(_ context.Context, config configs.Config, c CommandLine, _ io.Writer) error {
			r.did, r.config, r.fenceAbove = strings.TrimSpace(strings.Join(append([]string{word, c.Master}, c.Leave...), " ")), config, c.FenceAbove
			if c.Force {
				r.did += " by force"
			}
			return nil
		}
	}
	return r
}

func TestRun_RunsTheNamedJob(t *testing.T) {
	for line, want := range map[string]struct{ did, printed string }{
		"":                                    {"serve", ""},
		"--group g":                           {"serve", ""},
		"bootstrap --masters a,b,c":           {"bootstrap", ""},
		"bootstrap --masters a,b,c --force":   {"bootstrap by force", ""},
		"check --masters a,b,c":               {"check", ""},
		"reconfigure --masters a,b,c":         {"reconfigure", ""},
		"reconfigure --force --masters=a,b,c": {"reconfigure by force", ""},
		"quarantine b --masters=a,b,c":        {"quarantine b", ""},
		"masters remove b --masters=a,b,c":    {"masters  b", ""},
		"masters --help":                      {"", help("masters")},
		"quarantine --help":                   {"", help("quarantine")},
		"lock --help":                         {"", lockHelp()},
		"top --help":                          {"", topHelp()},
		"slots --help":                        {"", slotsHelp()},
		"help slots":                          {"", slotsHelp()},
		"help":                                {"", help("help")},
		"help masters":                        {"", help("masters")},
		"-v":                                  {"", "redlockd v9\n"},
		"masters --masters a,b,c":             {"masters", ""},
		"--help":                              {"", help("")},
		"bootstrap -h":                        {"", help("bootstrap")},
		"version":                             {"", "redlockd v9\n"},
		"man":                                 {"", manual("redlockd v9")},
		"--version":                           {"", "redlockd v9\n"},
	} {
		r := record()
		if err := r.Run(t.Context(), strings.Fields(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if r.did != want.did || r.out.String() != want.printed {
			t.Errorf("%q: did %q and printed %q, want %+v", line, r.did, r.out.String(), want)
		}
	}
}

func TestRun_HandsTheSettingsOn(t *testing.T) {
	r := record("REDLOCKD_MASTERS=a,b,c")
	if err := r.Run(t.Context(), []string{"bootstrap", "--group", "g"}); err != nil {
		t.Fatal(err)
	}
	if r.config.Group != "g" || len(r.config.Masters) != 3 {
		t.Errorf("got %+v", r.config)
	}
}

func TestRun_RefusesToPrepareEmbeddedMasters(t *testing.T) {
	for _, word := range []string{"bootstrap", "check", "reconfigure", "quarantine"} {
		r := record()
		if err := r.Run(t.Context(), []string{word}); !errors.Is(err, ErrUsage) || r.did != "" {
			t.Errorf("%s: did %q, %v", word, r.did, err)
		}
	}
}

func TestRun_QuarantineAndMastersNeedAMaster(t *testing.T) {
	for _, args := range [][]string{{"masters"}, {"masters", "remove", "b"}, {"quarantine", "--masters", "a,b,c"}, {"quarantine", "--masters", "a,b,c", "b"}, {"quarantine", "", "--masters", "a,b,c"}, {"quarantine", "b"}} {
		r := record()
		if err := r.Run(t.Context(), args); Report(io.Discard, err) != ExitUsage || r.did != "" {
			t.Errorf("%q: did %q, %v", args, r.did, err)
		}
	}
}

func TestReport_DistinguishesWrongSettingsFromFailuresAtWork(t *testing.T) {
	_, invalid := configs.Load([]string{"--databases", "0", "--max-ttl", "1"}, nil)
	_, usage := Parse([]string{"serve"})
	for _, c := range []struct {
		err   error
		code  int
		lines int
	}{
		{nil, ExitOK, 0},
		{invalid, ExitUsage, 2},
		{usage, ExitUsage, 1},
		{errors.New("address in use"), ExitRuntime, 1},
		{&Exit{Code: 143}, 143, 0},
		{&Exit{ExitHeld, "lock k: held by another client"}, ExitHeld, 1},
	} {
		var out strings.Builder
		if code := Report(&out, c.err); code != c.code || strings.Count(out.String(), "redlockd: ") != c.lines || strings.Count(out.String(), "\n") != c.lines {
			t.Errorf("%v: code %d and %q, want code %d and %d lines", c.err, code, out.String(), c.code, c.lines)
		}
	}
}

func TestBuild_IsOneLineThatHoldsTheVersion(t *testing.T) {
	if line := Build(); !strings.HasPrefix(line, "redlockd "+Version()) || strings.Contains(line, "\n") {
		t.Errorf("got %q", line)
	}
}
