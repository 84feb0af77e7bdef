package commands_test

import (
	"slices"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/pool"
	"redlockd/redlock"
)

type fakeMasterStatus struct {
	commands.Masters
	db int
}

func (f *fakeMasterStatus) Reports(db int) []redlock.MasterReport {
	f.db = db
	up := redlock.MasterReport{
		Status: redlock.MasterStatus{Name: "a", Address: "10.0.0.1:6379", State: "voting", Since: 2 * time.Second, RunID: "abc", Version: "7.0.15", Durable: true, Queued: 3, PendingReleases: 1, Epoch: 7, Configuration: "current"},
		Role:   "master", InFlight: 4, Clock: -70 * time.Microsecond, Votes: pool.Votes{Yes: 5, No: 6, Uncounted: 7},
		Daemons: []pool.Daemon{{Name: "web-1/812", Epoch: 7}, {Name: "web-2/9", Epoch: 6}},
	}
	up.RTT.Counts[0] = 98
	up.RTT.Counts[4] = 2
	return []redlock.MasterReport{up, {Status: redlock.MasterStatus{Name: "b", Address: "b:1", State: "down", Detail: "said: x,\r\ny", Left: 1500 * time.Millisecond}}}
}

func TestDMASTERS_ShowsAMapForEveryMaster(t *testing.T) {
	c, reports := newConversation(t), &fakeMasterStatus{}
	c.serve(commands.Deps{Masters: reports})
	c.client.DB = 3
	c.transcript(`
		> DMASTERS
		< [{"name" "a" "address" "10.0.0.1:6379" "state" "voting" "detail" "" "since_ms" :2000 "left_ms" :0 "work_left_ms" :0 "counters" :0 "epoch" :7 "configuration" "current" "own_list" "" "run_id" "abc" "version" "7.0.15" "role" "master" "durable" :1 "rtt_p50_us" :20 "rtt_p99_us" :40 "rtt_counts" "20:98 40:2" "clock_us" :-70 "in_flight" :4 "queued" :3 "pending_releases" :1 "granted" :5 "refused" :6 "uncounted" :7 "daemons" :2 "stale_daemons" :1} {"name" "b" "address" "b:1" "state" "down" "detail" "said: x,  y" "since_ms" :0 "left_ms" :1500 "work_left_ms" :0 "counters" :0 "epoch" :0 "configuration" "" "own_list" "" "run_id" "" "version" "" "role" "" "durable" :0 "rtt_p50_us" :0 "rtt_p99_us" :0 "rtt_counts" "" "clock_us" :0 "in_flight" :0 "queued" :0 "pending_releases" :0 "granted" :0 "refused" :0 "uncounted" :0 "daemons" :0 "stale_daemons" :0}]
	`)
	if reports.db != 3 {
		t.Errorf("read the masters of database %d", reports.db)
	}
}

// fakeMasterDrain has one master, c.
type fakeMasterDrain struct {
	commands.Masters
	calls []string
}

func (f *fakeMasterDrain) DrainMaster(name string) error   { return f.call("drain", name) }
func (f *fakeMasterDrain) UndrainMaster(name string) error { return f.call("undrain", name) }

func (f *fakeMasterDrain) call(word, name string) error {
	f.calls = append(f.calls, word+" "+name)
	if name != "c" {
		return &pool.NoMaster{Name: name, Names: []string{"c"}}
	}
	return nil
}

func TestDMASTERS_TakesAMasterOutOfServiceAndBackIn(t *testing.T) {
	c, drains := newConversation(t), &fakeMasterDrain{}
	c.serve(commands.Deps{Masters: drains})
	c.transcript(`
		> DMASTERS DRAIN c
		< +OK
		> dmasters undrain c
		< +OK
		> DMASTERS DRAIN x
		< -ERR no master is called "x"; the names are c; syntax: DMASTERS DRAIN master
		> DMASTERS DRAIN
		< -ERR wrong number of arguments for 'dmasters|drain' command; syntax: DMASTERS DRAIN master
		> DMASTERS WHAT
		< -ERR unknown subcommand 'WHAT'. Try DMASTERS HELP.
	`)
	if want := []string{"drain c", "undrain c", "drain x"}; !slices.Equal(drains.calls, want) {
		t.Errorf("called %q, want %q", drains.calls, want)
	}
	every(c.table, func(row *commands.Command) {
		if want := map[string]string{"dmasters": access.CategoryRead, "dmasters|drain": access.CategoryAdmin, "dmasters|undrain": access.CategoryAdmin}[row.Full]; want != "" && row.Category != want {
			t.Errorf("%s is in category %s", row.Syntax, row.Category)
		}
	})
}
