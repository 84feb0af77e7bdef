package daemon

// sick_masters_test.go: two masters of three are there and refuse. The client
// receives NOQUORUM, never the masters' own code: clients retry or redirect on
// those by themselves. When the masters are well again, so is the group.

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlockd/pool/faulty"
)

// illness is one way to refuse.
type illness struct {
	args []string // of the servers
	fall func(t *testing.T, s *faulty.Server)
	cure func(t *testing.T, s *faulty.Server) // nil: only the operator can, see the admission's tests
	// state and why are the daemon's report of such a master once it has one; ""
	// where it may also have given up waiting for an answer.
	state, why string
}

func illnesses() map[string]illness {
	return map[string]illness{
		"OOM":      {fall: telling("CONFIG SET maxmemory 1"), cure: telling("CONFIG SET maxmemory 0"), state: "failing", why: "OOM"},
		"NOPERM":   {fall: telling("ACL SETUSER default -set -zadd"), cure: telling("ACL SETUSER default +@all"), state: "failing", why: "NOPERM"},
		"MISCONF":  {fall: loseSnapshots, cure: telling("CONFIG SET stop-writes-on-bgsave-error no"), state: "failing", why: "MISCONF"},
		"BUSY":     {args: []string{"--busy-reply-threshold", "10"}, fall: runForEver, cure: telling("SCRIPT KILL")},
		"LOADING":  {args: []string{"--enable-debug-command", "yes"}, fall: reload, cure: telling("CONFIG SET key-load-delay 0")},
		"NOAUTH":   {fall: demandPassword, cure: forgetPassword, state: "down", why: "NOAUTH"},
		"READONLY": {fall: telling("REPLICAOF 127.0.0.1 1"), state: "refused", why: "is a slave"},
	}
}

// telling is a fall or a cure of one command.
func telling(line string) func(*testing.T, *faulty.Server) {
	return func(t *testing.T, s *faulty.Server) {
		t.Helper()
		var words []any
		for word := range strings.SplitSeq(line, " ") {
			words = append(words, word)
		}
		tell(t, s, words...)
	}
}

func tell(t *testing.T, s *faulty.Server, words ...any) {
	t.Helper()
	if _, err := s.Do(words...); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}

// loseSnapshots has a server fail to save: nothing can be written into a
// directory that is gone.
func loseSnapshots(t *testing.T, s *faulty.Server) {
	t.Helper()
	reply, err := s.Do("CONFIG", "GET", "dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(reply.([]any)[1].(string)); err != nil {
		t.Fatal(err)
	}
	tell(t, s, "CONFIG", "SET", "save", "3600 1")
	tell(t, s, "BGSAVE")
	eventually(t, "a snapshot has failed", func() bool {
		info, _ := s.Do("INFO", "persistence")
		text, _ := info.(string)
		return strings.Contains(text, "rdb_last_bgsave_status:err")
	}, s.Output)
}

// runForEver keeps a server busy with a script until that is killed.
func runForEver(t *testing.T, s *faulty.Server) {
	t.Helper()
	endless := dial(t, s.Addr())
	if _, err := endless.Write([]byte("EVAL \"while true do end\" 0\r\n")); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, s, "BUSY")
}

// reload has a server load its data slowly, looking at its clients in between.
func reload(t *testing.T, s *faulty.Server) {
	t.Helper()
	const keys = "for i = 1, 1000 do redis.call('SET', 'ballast-' .. i, string.rep('x', 2048)) end"
	tell(t, s, "EVAL", keys, 0)
	tell(t, s, "CONFIG", "SET", "rdbcompression", "no")
	tell(t, s, "CONFIG", "SET", "loading-process-events-interval-bytes", 1024)
	tell(t, s, "CONFIG", "SET", "key-load-delay", 20_000) // µs
	loading := dial(t, s.Addr())
	if _, err := loading.Write([]byte("DEBUG RELOAD\r\n")); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, s, "LOADING")
}

// awaitWell: some cures are answered before they have worked.
func awaitWell(t *testing.T, s *faulty.Server) {
	t.Helper()
	eventually(t, "the server is well again", func() bool {
		_, err := s.Do("DBSIZE")
		return err == nil
	}, s.Output)
}

func awaitRefusal(t *testing.T, s *faulty.Server, code string) {
	t.Helper()
	var said error
	eventually(t, "the server says "+code, func() bool {
		_, said = s.Do("ZCARD", "redlockd:seal")
		return said != nil && strings.HasPrefix(said.Error(), code)
	}, func() string { return s.Output() })
}

// demandPassword closes every client that does not use the new password.
func demandPassword(t *testing.T, s *faulty.Server) {
	t.Helper()
	operator := dial(t, s.Addr())
	for _, line := range []string{"CONFIG SET requirepass secret", "CLIENT KILL TYPE normal SKIPME yes"} {
		if got := operator.ask(t, "%s", line); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", line, got)
		}
	}
}

func forgetPassword(t *testing.T, s *faulty.Server) {
	t.Helper()
	operator := dial(t, s.Addr())
	for _, line := range []string{"AUTH secret", `CONFIG SET requirepass ""`} {
		if got := operator.ask(t, "%s", line); got != "+OK" {
			t.Fatalf("%s: %s", line, got)
		}
	}
}

func TestSickMasters_AQuorumOfThemIsNoQuorumAndNothingWorse(t *testing.T) {
	t.Parallel()
	for name, ill := range illnesses() {
		t.Run(name, func(t *testing.T) {
			servers := faulty.StartGroup(t, 3, ill.args...)
			bootstrapGroup(t, servers)
			c := dial(t, serveHere(t, addresses(servers)))
			mine := c.lock(t, "mine")
			for _, s := range servers[:2] {
				ill.fall(t, s)
			}
			c.suffers(t, ill)
			if ill.cure == nil {
				return
			}
			for _, s := range servers[:2] {
				ill.cure(t, s)
			}
			for _, s := range servers[:2] {
				awaitWell(t, s)
			}
			c.recovers(t, servers, mine)
		})
	}
}

func addresses(servers []*faulty.Server) []string {
	var list []string
	for _, s := range servers {
		list = append(list, s.Addr())
	}
	return list
}

// theirs are the codes that stay between the daemon and its masters.
var theirs = regexp.MustCompile(`^-(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOREPLICAS|MOVED|ASK|BUSY|OOM|MISCONF|NOAUTH|NOPERM|NOSCRIPT|ERR)\b`)

// suffers sends everything that needs a quorum, before and after the daemon
// detects why its masters fail.
func (c *client) suffers(t *testing.T, ill illness) {
	t.Helper()
	for _, known := range []bool{false, true} {
		if known && ill.state != "" {
			for i := range 2 {
				c.awaitMaster(t, i, ill.state, ill.why)
			}
		}
		for _, line := range []string{
			"DLOCK other 30000", "DEXTEND mine 0123456789 1000", "DUNLOCK mine 0123456789",
			"DNEXTID orders", "DWORK report 1000 MAX 3",
		} {
			got := c.ask(t, "%s", line)
			switch {
			case theirs.MatchString(got):
				t.Errorf("%s: %s: a master's own code", line, got)
			case !strings.HasPrefix(got, "-NOQUORUM "):
				t.Errorf("%s: %s, want NOQUORUM", line, got)
			case known && ill.why != "" && (!strings.Contains(got, ill.why) || strings.Count(got, "=127.0.0.1:") < 2): // one reason of both stands once
				t.Errorf("%s: %s, want the two masters with the reason %q", line, got, ill.why)
			}
		}
	}
	if got := c.ask(t, "PING"); got != "+PONG" {
		t.Errorf("PING: %s", got)
	}
}

// recovers wants everything to work as before, and nothing to be left behind.
func (c *client) recovers(t *testing.T, servers []*faulty.Server, mine string) {
	t.Helper()
	c.awaitVoters(t, servers)
	token := c.lock(t, "other")
	if got := c.ask(t, "DUNLOCK other %s", token); got != ":1" {
		t.Errorf("DUNLOCK other: %s", got)
	}
	if got := c.ask(t, "DUNLOCK mine %s", mine); got != ":1" {
		t.Errorf("DUNLOCK mine, which was locked before: %s", got)
	}
	for _, key := range []string{"other", "mine"} {
		eventually(t, "nothing is left of "+key, func() bool {
			return slices.Equal(held(t, servers, key), []string{"", "", ""})
		}, func() string { return strings.Join(held(t, servers, key), " ") })
	}
}
