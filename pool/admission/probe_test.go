package admission

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
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
		if why := Volatile(always, info); why != "" {
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
		{"redis_version:7.0.15", "redis_version:8.4.0\r\nredlockd_version:1.0.0", "is a redlockd"},
		{"redis_mode:standalone", "redis_mode:cluster", "cluster mode"},
		{"redis_mode:standalone", "redis_mode:sentinel", "sentinel mode"},
		{"role:master", "role:slave", "is a slave"},
		{"role:master\r\n", "", "REPLICAOF NO ONE"},
		{"noeviction", "allkeys-lru", "allkeys-lru"},
		{"noeviction", "volatile-ttl", "CONFIG SET maxmemory-policy noeviction"},
		{"maxmemory_policy:noeviction\r\n", "", "maxmemory-policy"},
	} {
		err := checkFitness(strings.Replace(good, c.old, c.new, 1))
		var reason *Unfit
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
		if why := Volatile(always, info); !strings.HasPrefix(why, says) && !strings.Contains(why, says) {
			t.Errorf("volatile because %q, want %q", why, says)
		}
	}
	for _, info := range []string{rewriting("1", "0", "88"), rewriting("0", "1", "88")} {
		if why := Volatile(always, info); why != "" {
			t.Errorf("volatile because %q while a later rewrite is due, although the file before it is whole", why)
		}
	}
	for i := 1; i < len(always.Items); i += 2 {
		for _, value := range []string{"everysec", "no", "yes", ""} {
			if value == always.Items[i].Str {
				continue
			}
			config := list(append([]wire.Reply(nil), always.Items...)...)
			config.Items[i] = text(value)
			if why := Volatile(config, good); why != config.Items[i-1].Str+" "+value {
				t.Errorf("%s %q: volatile because %q", config.Items[i-1].Str, value, why)
			}
		}
	}
	if why := Volatile(refusal("NOPERM"), good); why != configRefused {
		t.Errorf("CONFIG forbidden: %q, want that nothing is known", why)
	}
	for name, config := range map[string]wire.Reply{"nil": {}, "empty": list(), "odd": list(text("appendonly")), "nested": list(list(), list())} {
		if Volatile(config, good) == "" {
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
type told struct {
	answers func(args []string) wire.Reply
}

func (t told) Close() {}

func (t told) Exchange(commands []wire.Command, replies []wire.Reply) []wire.Reply {
	for i := range commands {
		replies = append(replies, t.answers(commands[i].Args))
	}
	return replies
}

func TestProbe_KeepsTheMostPreciseOfThreeSamples(t *testing.T) {
	hand, n := &handTime{}, 0
	link := told{func([]string) wire.Reply {
		n++
		hand.now += []time.Duration{9 * time.Millisecond, 3 * time.Millisecond, 6 * time.Millisecond}[n-1]
		us := epoch + clock.Micros(hand.Now())
		return list(decimal(us/1_000_000), decimal(us%1_000_000))
	}}
	var f ServerInfo
	if err := f.ReadClock(link, hand); err != nil || n != 3 {
		t.Fatalf("%v after %d samples", err, n)
	}
	if want := clock.Micros(3*time.Millisecond)/2 + 1; f.Est.Err != want {
		t.Errorf("error %d µs, want the best sample's %d", f.Est.Err, want)
	}
}

// handTime is a clock that a test moves by hand.
type handTime struct{ now time.Duration }

func (h *handTime) Now() time.Duration { return h.now }

func (h *handTime) AfterFunc(time.Duration, func()) clock.Timer { panic("a probe has no timers") }

const epoch = 1_800_000_000_000_000 // µs since 1970 at the hand's 0

func text(s string) wire.Reply            { return wire.Reply{Kind: wire.ReplyString, Str: s} }
func number(n int64) wire.Reply           { return wire.Reply{Kind: wire.ReplyInt, Int: n} }
func list(items ...wire.Reply) wire.Reply { return wire.Reply{Kind: wire.ReplyArray, Items: items} }
func decimal(n int64) wire.Reply          { return text(strconv.FormatInt(n, 10)) }
func refusal(message string) wire.Reply {
	return wire.Reply{Kind: wire.ReplyError, Err: wire.MasterError(message)}
}
