package setup

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

func performance(t *testing.T, o pool.Options) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Check(t.Context(), o, true, &out)
	return out.String(), err
}

// sets is how many SET commands a server has executed.
func sets(t *testing.T, s *faulty.Server) (n int) {
	t.Helper()
	info, err := s.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(info.(string), "cmdstat_set:calls=")
	_, _ = fmt.Sscan(strings.SplitN(text, ",", 2)[0], &n)
	return n
}

func TestCheckPerformance_TimesWritesAndLeavesNothing(t *testing.T) {
	servers := faulty.StartGroup(t, 3, onDisk...)
	o := optionsOf(servers...)
	for _, s := range servers {
		if _, err := s.Do("SET", "a-lock", "token"); err != nil {
			t.Fatal(err)
		}
	}
	before := sets(t, servers[0])
	out, err := performance(t, o)
	if err != nil || strings.Count(out, " writes: half within ") != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, says := range []string{"a lock waits ", ", the last of the nearest quorum (2 of 3)", "--master-timeout: ", " or more fits; the present 10s ", "the rule: 4 times the slowest write (", "at least 100ms"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
	if wrote := sets(t, servers[0]) - before; wrote < 2 { // the test of the rights has one of its own
		t.Errorf("%d writes were timed", wrote)
	}
	for _, s := range servers {
		if keys := s.Keys(); fmt.Sprint(keys) != "[a-lock]" {
			t.Errorf("the check left %q", keys)
		}
		if value, err := s.Do("GET", "a-lock"); err != nil || value != "token" {
			t.Errorf("a lock is %v, %v", value, err)
		}
	}
	if out, err := check(t, o); err != nil || strings.Contains(out, "writes") {
		t.Errorf("without the option: %v\n%s", err, out)
	}
}

func TestCheckPerformance_ReportsAMasterThatRefusesWrites(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	allow(t, servers[1], "default", "-set")
	out, err := performance(t, optionsOf(servers...))
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, "b: a write failed: NOPERM") || !strings.Contains(out, "b: no write was timed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheckPerformance_TimeoutIsFourTimesTheSlowestWrite(t *testing.T) {
	const ms = time.Millisecond
	for slowest, want := range map[time.Duration]time.Duration{
		0: 100 * ms, ms: 100 * ms, 25 * ms: 100 * ms, 25*ms + 1: 110 * ms, 30 * ms: 120 * ms, 251 * ms: 1010 * ms,
	} {
		if got := fittingTimeout(slowest); got != want {
			t.Errorf("%s: %s, want %s", slowest, got, want)
		}
	}
}

// A node of a Redis Cluster is refused for what it is, and no advice leads astray.
func TestCheck_RefusesANodeOfACluster(t *testing.T) {
	node := faulty.Start(t, "--cluster-enabled", "yes")
	servers := faulty.StartGroup(t, 2)
	o := optionsOf(servers[0], servers[1], node)
	out, err := check(t, o)
	if !errors.Is(err, ErrUnfit) || !strings.Contains(out, "c: runs in cluster mode: masters are independent standalone servers; a node of a Redis Cluster may lose a lock when a replica takes over or a slot moves: start a server with cluster-enabled no; for more masters than those of one group see [[group]] in the configuration file") || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "delete") || strings.Contains(out, "has no database") || strings.Contains(out, "cannot be read") {
		t.Errorf("advice that does not help:\n%s", out)
	}
	seen(t, o, 2, "refused runs in cluster mode: masters are independent standalone servers; a node of a Redis Cluster may lose a lock")
}
