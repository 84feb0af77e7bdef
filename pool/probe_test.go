package pool

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/clock"
)

// servers are the lines of INFO that matter, as servers of these versions send them.
var servers = map[string]string{
	"Redis 6.2": "redis_version:6.2.14\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n" +
		"aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:0\r\n",
	"Redis 7.0": "redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\nasync_loading:0\r\n" +
		"aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n",
	"Redis 7.4": "redis_version:7.4.2\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\nmonotonic_clock:POSIX clock_gettime\r\n" +
		"aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n",
	"Redis 8.2": "redis_version:8.2.1\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n" +
		"aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n",
	"Valkey 7.2": "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.2.8\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n" +
		"aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n",
	"Valkey 8.1": "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nvalkey_release_stage:ga\r\nserver_mode:standalone\r\n" +
		"role:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n",
}

var always = list(text("appendonly"), text("yes"), text("appendfsync"), text("always"), text("no-appendfsync-on-rewrite"), text("no"))

func TestProbe_EveryServerOfTheDocumentedVersionsIsFitAndMayBeDurable(t *testing.T) {
	for name, info := range servers {
		if err := checkFitness(info); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if why := volatile(always, info); why != "" {
			t.Errorf("%s with appendfsync always is not durable: %s", name, why)
		}
	}
}

func TestProbe_RefusesServersOnWhichALockCouldDisappearAndSaysWhy(t *testing.T) {
	good := servers["Redis 7.0"]
	for _, c := range []struct{ old, new, says string }{
		{"redis_version:7.0.15", "redis_version:6.0.16", "version 6.0.16"},
		{"redis_version:7.0.15", "redis_version:5.0.7", "6.2 or later"},
		{"redis_version:7.0.15\r\n", "", "version "},
		{"redis_version:7.0.15", "redis_version:seven", "version seven"},
		{"redis_mode:standalone", "redis_mode:cluster", "cluster mode"},
		{"redis_mode:standalone", "redis_mode:sentinel", "sentinel mode"},
		{"role:master", "role:slave", "is a slave"},
		{"role:master\r\n", "", "REPLICAOF NO ONE"},
		{"noeviction", "allkeys-lru", "allkeys-lru"},
		{"noeviction", "volatile-ttl", "CONFIG SET maxmemory-policy noeviction"},
		{"maxmemory_policy:noeviction\r\n", "", "maxmemory-policy"},
	} {
		err := checkFitness(strings.Replace(good, c.old, c.new, 1))
		var reason *unfit
		if !errors.As(err, &reason) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q instead of %q: %v, want a lasting reason that says %q", c.new, c.old, err, c.says)
		}
	}
	if err := checkFitness(""); err == nil {
		t.Error("a server that says nothing is fit")
	}
}

func TestProbe_IsDurableOnlyIfEveryAnswerIsOnDisk(t *testing.T) {
	good := servers["Redis 7.0"]
	rewriting := func(progress, scheduled, base string) string {
		return strings.NewReplacer("rewrite_in_progress:0", "rewrite_in_progress:"+progress,
			"rewrite_scheduled:0", "rewrite_scheduled:"+scheduled, "base_size:88", "base_size:"+base).Replace(good)
	}
	for info, says := range map[string]string{
		strings.Replace(good, "write_status:ok", "write_status:err", 1): "aof_last_write_status err",
		strings.Replace(good, "aof_last_write_status:ok\r\n", "", 1):    "aof_last_write_status ",
		rewriting("1", "0", "0"): "first rewrite",
		rewriting("0", "1", "0"): "first rewrite",
	} {
		if why := volatile(always, info); !strings.HasPrefix(why, says) && !strings.Contains(why, says) {
			t.Errorf("volatile because %q, want %q", why, says)
		}
	}
	for _, info := range []string{rewriting("1", "0", "88"), rewriting("0", "1", "88")} {
		if why := volatile(always, info); why != "" {
			t.Errorf("volatile because %q while a later rewrite is due, although the file before it is whole", why)
		}
	}
	for i := 1; i < len(always.Items); i += 2 {
		for _, value := range []string{"everysec", "no", "yes", ""} {
			if value == always.Items[i].Str {
				continue
			}
			config := list(append([]Reply(nil), always.Items...)...)
			config.Items[i] = text(value)
			if why := volatile(config, good); why != config.Items[i-1].Str+" "+value {
				t.Errorf("%s %q: volatile because %q", config.Items[i-1].Str, value, why)
			}
		}
	}
	if why := volatile(refusal("NOPERM"), good); why != configRefused {
		t.Errorf("CONFIG forbidden: %q, want that nothing is known", why)
	}
	for name, config := range map[string]Reply{"nil": {}, "empty": list(), "odd": list(text("appendonly")), "nested": list(list(), list())} {
		if volatile(config, good) == "" {
			t.Errorf("durable with CONFIG %s", name)
		}
	}
}

func TestProbe_ComparesVersionsAsNumbers(t *testing.T) {
	for version, want := range map[string]bool{
		"6.2.0": true, "6.2": true, "6.10.1": true, "7.0.0": true, "10.0.0": true, "255.255.255": true,
		"6.1.9": false, "6.0.20": false, "5.9.9": false, "6": false, "": false, "6.x": false, "a.b": false, ".": false,
	} {
		if got := atLeast(version, 6, 2); got != want {
			t.Errorf("atLeast(%q, 6, 2) = %v", version, got)
		}
	}
}

// told is a link that answers from a script.
type told struct{ answers func(args []string) Reply }

func (l told) Close() {}

func (l told) Exchange(commands []Command, replies []Reply) []Reply {
	for i := range commands {
		replies = append(replies, l.answers(commands[i].Args))
	}
	return replies
}

func TestProbe_KeepsTheMostPreciseOfThreeSamples(t *testing.T) {
	hand, n := newHandClock(), 0
	link := told{func([]string) Reply {
		n++
		hand.pass([]time.Duration{9 * time.Millisecond, 3 * time.Millisecond, 6 * time.Millisecond}[n-1])
		us := epoch + clock.Micros(hand.Now())
		return list(decimal(us/1_000_000), decimal(us%1_000_000))
	}}
	var f serverInfo
	if err := f.readClock(link, hand); err != nil || n != 3 {
		t.Fatalf("%v after %d samples", err, n)
	}
	if want := clock.Micros(3*time.Millisecond)/2 + 1; f.est.Err != want {
		t.Errorf("error %d µs, want the best sample's %d", f.est.Err, want)
	}
}

func TestProbe_AMasterThatAnswersNonsenseIsRefusedNotFollowed(t *testing.T) {
	for _, r := range nonsense() {
		for _, command := range []string{"CLIENT", "INFO", "CONFIG", "TIME", "EVAL", "SCRIPT"} {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, 3, Options{})
				defer s.pool.Close()
				s.change(0, func(m *fakeMaster) { falsify(command, r)(m); m.cut, m.runID = true, "another" })
				s.vote(0)
				s.change(0, func(m *fakeMaster) { m.cut = false })
				s.clock.advance(time.Second)
				if st := s.state(0); st == "voting" && command == "EVAL" {
					t.Errorf("%s answered with %+v: %s", command, r, st)
				}
			})
		}
	}
}

// nonsense are replies of every shape.
func nonsense() []Reply {
	out := []Reply{{}, number(-1), number(1 << 62), text(""), text("OK"), refusal("ERR no"), list(), list(Reply{}),
		list(text("OK")), list(text("OK"), text("x"), text("y"), text("z")), list(list(list()), number(1)),
		list(text("REPLICA"), Reply{}), list(text("CLOCK"), text("-")), list(text("FINGERPRINT"), text("///")),
		list(text("OK"), text("a b 1 1 f"), Reply{}, text("nan")), {Kind: ReplyKind(99)}}
	return append(out, list(out...))
}
