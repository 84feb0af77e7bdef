// Tests of what the parts get of the configuration.
package main

import (
	"io"
	"strings"
	"testing"

	"redlockd/configs"
)

func load(t *testing.T, args ...string) configs.Config {
	t.Helper()
	config, err := configs.Load(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestOptions_IDsAreVolatileOnEmbeddedMastersAndByTheOperatorsChoice(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--ids-durability=on"}, true},
		{[]string{"--masters=a,b,c"}, false},
		{[]string{"--masters=a,b,c", "--ids-durability=off"}, true},
		{[]string{"--masters=a,b,c", "--assume-durable"}, false},
	} {
		config := load(t, c.args...)
		if got := lockerOptions(config, newLogger(config, io.Discard)).VolatileIDs; got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
}

func TestOptions_AssumeDurableReachesThePool(t *testing.T) {
	for _, want := range []bool{false, true} {
		config := load(t, "--masters=a,b,c")
		config.AssumeDurable = want
		options, err := poolOptions(config, newLogger(config, io.Discard))
		if err != nil || options.AssumeDurable != want {
			t.Errorf("%t: %+v %v", want, options, err)
		}
	}
}

func TestWarnings_SayThatTheCountersOfEmbeddedMastersEndWithTheProcess(t *testing.T) {
	if got := strings.Join(warnings(load(t)), "\n"); !strings.Contains(got, "counters and work end with this process") {
		t.Errorf("got %q", got)
	}
	if got := warnings(load(t, "--masters=a,b,c")); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(warnings(load(t, "--masters=a,b,c", "--ids-durability=off")), "\n"); !strings.Contains(got, "ids may be given a second time") {
		t.Errorf("got %q", got)
	}
}
