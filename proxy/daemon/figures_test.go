package daemon

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock"
)

// observed is a daemon without a port on real masters, and its INFO.
type observed struct {
	*redlock.Locker
	t     *testing.T
	table *commands.Table
}

func observe(t *testing.T, servers []*faulty.Server) *observed {
	t.Helper()
	// These tests count what happened; a machine that is busy must not add to it.
	d := observeWith(t, servers, time.Minute)
	d.awaits("all masters vote", func(f figures) bool { return f["masters_voting"] == int64(len(servers)) })
	return d
}

// observeWith is observe with a timeout that a master is to exceed.
func observeWith(t *testing.T, servers []*faulty.Server, timeout time.Duration) *observed {
	t.Helper()
	bootstrapGroup(t, servers)
	o := pool.Options{MasterTimeout: timeout, Logger: slog.New(slog.DiscardHandler)}
	for i, s := range servers {
		o.Masters = append(o.Masters, pool.Master{Name: masterName(i), Network: "tcp", Address: s.Addr()})
	}
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	locker, err := redlock.New(p, redlock.Options{Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	return &observed{locker, t, newTable(commands.Deps{Locks: locker, Masters: locker, Clients: func() commands.ClientCounts { return commands.ClientCounts{} }})}
}

// figures are the integers of INFO masters.
type figures map[string]int64

// page takes the one reply of INFO.
type page struct{ text string }

func (p *page) Complete(r commands.Reply)                 { p.text = r.Text }
func (p *page) CompleteDeferred(l commands.DeferredReply) { p.text = l.Reply().Text }

func (d *observed) figures() figures {
	var p page
	d.table.Dispatch(&commands.Call{Args: []string{"INFO", "masters"}, Client: &commands.Client{Proto: 2}, Completer: &p})
	f := make(figures)
	for line := range strings.SplitSeq(p.text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			f[name] = n
		}
	}
	return f
}

func (d *observed) awaits(what string, true func(figures) bool) {
	d.t.Helper()
	var seen figures
	eventually(d.t, what, func() bool { seen = d.figures(); return true(seen) }, func() string { return fmt.Sprint(seen) })
}

// rises has something done and waits until these figures are above what they were.
func (d *observed) rises(do func(), names ...string) {
	d.t.Helper()
	before := d.figures()
	do()
	d.awaits(fmt.Sprint("these rise: ", names), func(f figures) bool {
		for _, name := range names {
			if f[name] <= before[name] {
				return false
			}
		}
		return true
	})
}

// pair locks and unlocks.
func (d *observed) pair(key redlock.Key) {
	d.t.Helper()
	done := make(chan error, 1) // the one answer
	d.Lock(nil, redlock.LockRequest{Key: key, TTL: 30 * time.Second}, func(g redlock.Grant, err error) {
		if err != nil {
			done <- err
			return
		}
		d.Unlock(nil, redlock.UnlockRequest{Key: key, Token: g.Token}, func(_ bool, err error) { done <- err })
	})
	select {
	case err := <-done:
		if err != nil {
			d.t.Fatalf("%s: %v", key, err)
		}
	case <-time.After(testTimeout):
		d.t.Fatalf("%s was never answered", key)
	}
}

func TestFigures_OfTheLanesFollowWhatHappensToTheMasters(t *testing.T) {
	const pairs = 20
	servers := faulty.StartGroup(t, 3)
	d := observe(t, servers)
	start := d.figures()
	if start["dials"] != 3 || start["admissions"] != 3 || start["void_seals"] != 0 || start["lane_panics"] != 0 {
		t.Errorf("a group that was never disturbed: %v, want 3 dials, 3 admissions and nothing bad", start)
	}
	d.rises(func() {
		for i := range pairs {
			d.pair(redlock.Key(fmt.Sprint("key-", i)))
		}
	}, "flushes", "seals", "flushed_operations")
	d.awaits("every lock and release is counted on every master", func(f figures) bool {
		return f["flushed_operations"]-start["flushed_operations"] >= 3*2*pairs
	})
	d.rises(servers[0].FlushAll, "void_seals", "dials", "admissions", "new_incarnations")
	d.rises(func() { servers[1].Kill() }, "dials")
	servers[1].Restart()
	d.rises(func() {
		d.Lock(nil, redlock.LockRequest{Key: "k", TTL: time.Second}, func(redlock.Grant, error) { panic("a caller's own mistake") })
	}, "lane_panics")
}

// Here a master is to be late, and one that is late anyhow changes nothing.
func TestFigures_CountTheBreakerThatAStoppedMasterOpens(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	d := observeWith(t, servers, 100*time.Millisecond)
	d.awaits("all masters are connected", func(f figures) bool { return f["admissions"] >= 3 })
	d.rises(func() { servers[2].Stop() }, "breakers_opened")
	servers[2].Cont()
}

func TestFigures_CountAnIncarnationThatAClockInvalidated(t *testing.T) {
	t.Parallel()
	servers := faulty.WithClock().StartGroup(t, 3)
	d := observe(t, servers)
	// The step is seen if it exceeds the error of the estimate, which is the best of
	// many looks: the first ones may have been slow.
	looks := d.figures()["seals"]
	d.awaits("the clocks are known closely", func(f figures) bool { return f["seals"] >= looks+30 })
	d.rises(func() { servers[0].Step(200 * time.Millisecond) }, "incarnations_invalidated", "void_seals", "new_incarnations")
}

func TestFigures_CountClientsThatWereRejected(t *testing.T) {
	address := serveHere(t, nil, "--embedded", "3", "--max-clients", "1")
	c := dial(t, address)
	if got := c.info(t, "stats")["rejected_connections"]; got != "0" {
		t.Fatalf("rejected_connections:%s before anybody else came", got)
	}
	for range 3 {
		if got := dial(t, address).line(t); !strings.HasPrefix(got, "-ERR max number of clients reached") {
			t.Errorf("one client too many: %s", got)
		}
	}
	if got := c.info(t, "stats")["rejected_connections"]; got != "3" {
		t.Errorf("rejected_connections:%s, want 3", got)
	}
}

// What clients asked is counted once for each of their requests, however often the daemon tried: for a
// renewal of HOLD, a waiter, or the page.
func TestFigures_CountUndecidedRequestsAndNotTheDaemonsTries(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	c := dial(t, serveHere(t, addresses(servers)))
	c.awaitVoters(t, servers)
	holder, waiter := dial(t, c.RemoteAddr().String()), dial(t, c.RemoteAddr().String())
	if reply := holder.ask(t, "DLOCK held 6000 HOLD"); reply != "*3" {
		t.Fatal(reply)
	}
	if reply := c.ask(t, "DLOCK held 6000"); reply != "$-1" {
		t.Fatal(reply)
	}
	servers[0].Kill()
	servers[1].Kill()
	if _, err := fmt.Fprint(waiter, "DLOCK held 6000 WAIT 60000\r\n"); err != nil {
		t.Fatal(err)
	}
	const asked = 5
	for i := range asked {
		if reply := c.ask(t, "DLOCK other-%d 30000", i); !strings.HasPrefix(reply, "-NOQUORUM ") {
			t.Fatal(reply)
		}
		if reply := c.ask(t, "DINFO held"); !strings.HasPrefix(reply, "-NOQUORUM ") { // it only reads
			t.Fatal(reply)
		}
	}
	eventually(t, "renewals and tries of the waiter fail", func() bool {
		tries, err := strconv.Atoi(c.info(t, "locks")["ballots_undecided"])
		return err == nil && tries > 3*asked
	}, func() string { return fmt.Sprint(c.info(t, "locks")) })
	if info := c.info(t, "locks"); info["locks_no_quorum"] != strconv.Itoa(asked) || info["locks_refused"] != "1" || info["locks_expired"] != "0" {
		t.Errorf("clients had %d NOQUORUM and one nil: %v", asked, info)
	}
}
