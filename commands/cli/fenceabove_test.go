package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParse_TakesTheFenceOfABootstrap(t *testing.T) {
	for line, want := range map[string]struct {
		fence int64
		force bool
		args  string
	}{
		"bootstrap --fence-above 7 --masters a":                        {7, false, "--masters a"},
		"bootstrap --masters a --fence-above=4503595332403200 --force": {1<<52 - 1<<32, true, "--masters a"},
		"bootstrap --force --masters a --fence-above 9":                {9, true, "--masters a"},
		"bootstrap --masters a -- --fence-above 7":                     {0, false, "--masters a -- --fence-above 7"},
		"check --fence-above 7":                                        {0, false, "--fence-above 7"},
		"reconfigure --fence-above 7":                                  {0, false, "--fence-above 7"},
	} {
		got, err := Parse(strings.Fields(line))
		if err != nil || got.FenceAbove != want.fence || got.Force != want.force || !slices.Equal(got.Args, strings.Fields(want.args)) {
			t.Errorf("%q: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for line, value := range map[string]string{
		"bootstrap --fence-above":                      "",
		"bootstrap --fence-above x --masters a":        "x",
		"bootstrap --fence-above=":                     "",
		"bootstrap --fence-above=0":                    "0",
		"bootstrap --fence-above -1":                   "-1",
		"bootstrap --fence-above=99999999999999999999": "99999999999999999999",
	} {
		_, err := Parse(strings.Fields(line))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), `--fence-above = "`+value+`" is no whole number above 0`) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestRun_HandsTheFenceOn(t *testing.T) {
	r := record()
	if err := r.Run(t.Context(), strings.Fields("bootstrap --masters a,b,c --fence-above 7")); err != nil || r.did != "bootstrap" || r.fenceAbove != 7 {
		t.Errorf("%v: did %q above %d", err, r.did, r.fenceAbove)
	}
}
