package admin

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands/dropin"
)

func TestMetrics_ShowDropInByLibrary(t *testing.T) {
	o := figures()
	o.Sources.Dropin = func() []dropin.Stat {
		f := dropin.Stat{Library: "redis-py Lock", Operation: "release", Yes: 5, No: 2, Undecided: 1, Sum: 3 * time.Second}
		f.Times[0], f.Times[1], f.Times[len(f.Times)-1] = 4, 3, 1
		return []dropin.Stat{f}
	}
	page := ask(t, o, "127.0.0.1:1", "/metrics", "").Body.String()
	for _, line := range []string{
		`redlockd_dropin_total{does="release",library="redis-py Lock",outcome="yes"} 5`,
		`redlockd_dropin_total{does="release",library="redis-py Lock",outcome="undecided"} 1`,
		`redlockd_dropin_seconds_bucket{does="release",library="redis-py Lock",le="6.4e-05"} 4`,
		`redlockd_dropin_seconds_bucket{does="release",library="redis-py Lock",le="0.000128"} 7`,
		`redlockd_dropin_seconds_bucket{does="release",library="redis-py Lock",le="+Inf"} 8`,
		`redlockd_dropin_seconds_sum{does="release",library="redis-py Lock"} 3`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}
