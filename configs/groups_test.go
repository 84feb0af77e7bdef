package configs

import (
	"fmt"
	"strings"
	"testing"
)

// table is a [[group]] with three masters at ports from first on.
func table(name string, first int, slots string) string {
	return fmt.Sprintf("[[group]]\nname = %[1]q\nmasters = [\"%[1]s-a=10.0.0.1:%[2]d\", \"%[1]s-b=10.0.0.1:%[3]d\", \"%[1]s-c=10.0.0.1:%[4]d\"]\nslots = %[5]q\n",
		name, first, first+1, first+2, slots)
}

func TestGroups_AreReadFromTheFile(t *testing.T) {
	path := writeFile(t, "max-ttl = \"5s\"\n"+table("g1", 6001, "0-99, 200-16383")+"[[group]]\nname = \"g2\"\nmasters = \"x=10.0.0.2:1, redis://u:secret@10.0.0.2:2,10.0.0.2:3\"\nslots = \"100-199\"\n")
	config := mustLoad(t, []string{"--config", path}, nil)
	each := config.Each()
	if len(each) != 2 || config.Embedded != 0 || len(config.Masters) != 0 || config.Group != "" {
		t.Fatalf("%d groups, %+v", len(each), config)
	}
	for i, want := range []string{"g1 3 0-99,200-16383 5s", "g2 3 100-199 5s"} {
		if got := fmt.Sprint(each[i].Group, " ", len(each[i].Masters), " ", each[i].Slots, " ", each[i].MaxTTL); got != want {
			t.Errorf("group %d is %s, want %s", i, got, want)
		}
	}
	if second := each[1].Masters[1]; second.Username != "u" || second.Password != "secret" {
		t.Errorf("the login is lost: %+v", second)
	}
	shown := config.Settings("group")[0][1] + config.Settings("masters")[0][1]
	if !strings.HasPrefix(shown, "g1=0-99,200-16383 g2=100-199g1-a=10.0.0.1:6001") || strings.Contains(shown, "secret") {
		t.Errorf("CONFIG GET shows %q", shown)
	}
	only := mustLoad(t, []string{"--config", path, "--group", "g2"}, nil).Each()
	if len(only) != 1 || only[0].Group != "g2" {
		t.Errorf("--group g2 leaves %+v", only)
	}
}

// It is to get its first slots while the daemons serve.
func TestGroups_OneMayHaveNoSlots(t *testing.T) {
	path := writeFile(t, table("g1", 6001, "0-16383")+table("g2", 6101, "none"))
	if each := mustLoad(t, []string{"--config", path}, nil).Each(); len(each) != 2 || each[0].Slots != "" || each[1].Slots != "none" {
		t.Errorf("%+v", each)
	}
}

// One table with all slots is a group without slots: it may be written for masters that serve already.
func TestGroups_OneWithAllSlotsIsTheGroupThatItWas(t *testing.T) {
	each := mustLoad(t, []string{"--config", writeFile(t, table("default", 6001, "0-16383"))}, nil).Each()
	if len(each) != 1 || each[0].Slots != "" || each[0].Group != "default" {
		t.Errorf("%+v", each)
	}
	if each := Default().Each(); len(each) != 1 || each[0].Slots != "" || each[0].Embedded != 5 {
		t.Errorf("%+v", each)
	}
}

func TestGroups_WhatIsWrongIsNamed(t *testing.T) {
	good := table("g1", 6001, "0-8191") + table("g2", 6101, "8192-16383")
	for name, c := range map[string]struct {
		file  string
		args  []string
		parts []string
	}{
		"a gap":                  {table("g1", 6001, "0-8190") + table("g2", 6101, "8192-16383"), nil, []string{"[[group]] (from ", "redlockd.toml, line 1): slots 8191 belong to no group", "give each slot of 0-16383 to exactly one group"}},
		"an overlap":             {table("g1", 6001, "0-8200") + table("g2", 6101, "8192-16383"), nil, []string{"slots 8192-8200 belong to the groups g1 (line 4) and g2 (line 8)"}},
		"slots that are none":    {table("g1", 6001, "0-x") + table("g2", 6101, "8192-16383"), nil, []string{"slots of [[group]] 1", "line 4", `"x" is not a slot`}},
		"no slots":               {"[[group]]\nname = \"g1\"\nmasters = \"10.0.0.1:1,10.0.0.1:2,10.0.0.1:3\"\n", nil, []string{"slots of [[group]] 1", "line 1", "is not a slot"}},
		"a name twice":           {table("g1", 6001, "0-8191") + table("g1", 6101, "8192-16383"), nil, []string{"[[group]] g1 (from ", "line 6): has the name of another one"}},
		"no name":                {table("", 6001, "0-16383"), nil, []string{"line 2): has no name"}},
		"no masters":             {"[[group]]\nname = \"g1\"\nslots = \"0-16383\"\n", nil, []string{"line 1): has no masters"}},
		"two masters":            {"[[group]]\nname = \"g1\"\nslots = \"0-16383\"\nmasters = \"10.0.0.1:1,10.0.0.1:2\"", nil, []string{"[[group]] g1 = 2 masters (from ", "line 4): cannot lose one"}},
		"a master that is none":  {"[[group]]\nname = \"g1\"\nslots = \"0-16383\"\nmasters = \"redis://u:secret@[,10.0.0.1:2\"", nil, []string{"masters of [[group]] 1"}},
		"a master of two groups": {strings.ReplaceAll(good, "10.0.0.1:6101", "10.0.0.1:6001"), nil, []string{"line 7): master g2-a=10.0.0.1:6001 has the address 10.0.0.1:6001, as one of group g1 has"}},
		"a name of two masters":  {strings.ReplaceAll(good, "g2-a", "g1-a"), nil, []string{"line 7): master g1-a=10.0.0.1:6101 has the name g1-a, as one of group g1 has"}},
		"an unknown key":         {good + "master = \"x\"\n", nil, []string{"master of [[group]] 2", "line 9", "the nearest one is masters"}},
		"no slots in the second": {table("g1", 6001, "0-8191") + "[[group]]\nname = \"g2\"\n", nil, []string{"slots of [[group]] 2", "line 5"}},
		"inline tables":          {"max-ttl = \"5s\"\ngroup = [{name = \"g1\"}]\n", nil, []string{"slots of [[group]] 1", "line 2"}},
		"an option after it":     {good + "max-ttl = \"5s\"\n", nil, []string{"max-ttl of [[group]] 2", "line 9", "write it before the first [[group]]"}},
		"--masters, too":         {good, []string{"--masters", "10.0.0.9:1,10.0.0.9:2,10.0.0.9:3"}, []string{"masters (from --masters): cannot be combined with [[group]] tables"}},
		"--embedded, too":        {good, []string{"--embedded", "3"}, []string{"embedded (from --embedded): cannot be combined with [[group]] tables"}},
		"--group of none":        {good, []string{"--group", "g3"}, []string{`group = "g3" (from --group): is none of the groups of the file`, "name one of g1, g2"}},
		"one pair of brackets":   {"[group]\nname = \"g1\"\n", nil, []string{"group"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, append(c.args, "--config", writeFile(t, c.file)), nil, c.parts...)
			if _, err := Load(append(c.args, "--config", writeFile(t, c.file)), nil); strings.Contains(err.Error(), "secret") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
	var many strings.Builder
	for i := range maxGroups + 1 {
		last := i
		if i == maxGroups {
			last = 16383
		}
		many.WriteString(table(fmt.Sprint("g", i), 1000+3*i, fmt.Sprintf("%d-%d", i, last)))
	}
	wantRefused(t, []string{"--config", writeFile(t, many.String())}, nil, "line 513): is one of 129 groups, 128 are allowed")
}
