package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

type fakeFigures struct {
	commands.Masters
	db int
}

func (f *fakeFigures) Reports(db int) []redlock.MasterReport {
	f.db = db
	return []redlock.MasterReport{
		{Status: redlock.MasterStatus{Name: "a", Address: "10.0.0.1:6379", State: "voting", Since: 2 * time.Second, RunID: "abc", Version: "7.0.15", Durable: true, Queued: 3, PendingReleases: 1, Epoch: 7, Configuration: "current"}},
		{Status: redlock.MasterStatus{Name: "b", Address: "10.0.0.2:6379", State: "down", Since: time.Minute, Epoch: 6, Configuration: "stale", Detail: "said: x,y\r\nz"}},
	}
}

func (f *fakeFigures) Counters() (c redlock.Counters) {
	for i, n := range []*int64{
		&c.Acquired, &c.Refused, &c.NoQuorum, &c.Expired, &c.Split, &c.Released, &c.Extended, &c.GivenBack, &c.Undone, &c.LateGrants, &c.SecondSeals,
		&c.Repaired, &c.ThirdSeals, &c.IDs, &c.IDRounds, &c.WorkStarted, &c.WorkDone,
	} {
		*n = int64(i + 1)
	}
	return c
}

func (f *fakeFigures) MasterCounters() pool.Counters    { return pool.Counters{} }
func (f *fakeFigures) EventCounts() redlock.EventCounts { return redlock.EventCounts{} }
func (f *fakeFigures) Waiters() int                     { return 0 }
func (f *fakeFigures) Tracked() int                     { return 0 }
func (f *fakeFigures) InFlight() int                    { return 0 }
func (f *fakeFigures) Holds() int                       { return 0 }

func informed(t *testing.T) (*conversation, *fakeFigures) {
	c, figures := newConversation(t), &fakeFigures{}
	c.table = newTable(commands.Deps{
		Masters: figures, Version: "0.1.0", RunID: strings.Repeat("a", 40), Port: 7379, Start: time.Now().Add(-25 * time.Hour),
		Clients: func() commands.ClientCounts {
			return commands.ClientCounts{Connected: 4, Limit: 10000, Accepted: 9, Rejected: 2, Commands: 77, Slow: 3, Evicted: 5, Memory: 4096}
		},
	})
	return c, figures
}

func TestINFO_BeginsWithTheVersionThatClientsLookFor(t *testing.T) {
	c, _ := informed(t)
	for _, line := range []string{"INFO", "info server", "INFO everything"} {
		r := c.start(strings.Fields(line)...).read(t)
		if r.Kind != commands.KindBulk || !strings.HasPrefix(r.Text, "# Server\r\nredis_version:8.4.0\r\n") {
			t.Errorf("%s: %s", line, show(r))
		}
	}
}

func TestINFO_HasTheWarningOfTheSettings(t *testing.T) {
	c := newConversation(t)
	for want, deps := range map[string]commands.Deps{
		"": {}, "redlockd_warning:bootstrap stays\r\n": {Warning: "bootstrap stays"}, "redlockd_warning:compat-test is on": {Warning: "bootstrap stays", CompatTest: true},
	} {
		c.serve(deps)
		if reply := c.start("INFO", "server").read(t).Text; !strings.Contains(reply, want) || strings.Count(reply, "redlockd_warning") != min(len(want), 1) {
			t.Errorf("%q: %s", want, reply)
		}
	}
}

func TestINFO_HasTheFieldsThatClientsRead(t *testing.T) {
	c, figures := informed(t)
	c.client.DB = 6
	text := c.start("INFO").read(t).Text
	for _, line := range []string{
		"redlockd_version:0.1.0", "redis_mode:standalone", "arch_bits:64", "run_id:" + strings.Repeat("a", 40), "tcp_port:7379",
		"uptime_in_seconds:90000", "uptime_in_days:1",
		"connected_clients:4", "maxclients:10000", "number_of_cached_scripts:0", "loading:0", "aof_enabled:0",
		"total_connections_received:9", "total_commands_processed:77", "rejected_connections:2",
		"mem_clients_normal:4096", "client_output_buffer_limit_disconnections:3", "evicted_clients:5",
		"role:master", "connected_slaves:0", "cluster_enabled:0",
		"locks_acquired:1", "locks_refused:0", "locks_no_quorum:0", "locks_expired:0", "ballots_refused:2", "ballots_undecided:3", "ballots_expired:4", "locks_split:5", "locks_released:6",
		"locks_extended:7", "locks_given_back:8", "copies_undone:9", "copies_late:10", "second_seals:11", "third_seals:13", "copies_repaired:12",
		"masters:2", "masters_voting:1", "configuration_epoch:7",
		"master0:name=a,address=10.0.0.1:6379,state=voting,since_ms=2000,epoch=7,run_id=abc,version=7.0.15,durable=true,queued=3,pending_releases=1,detail=",
		"master1:name=b,address=10.0.0.2:6379,state=down,since_ms=60000,epoch=6,run_id=,version=,durable=false,queued=0,pending_releases=0,detail=said: x;y  z",
	} {
		if !strings.Contains(text, "\r\n"+line+"\r\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
		t.Error("a line ends without CR")
	}
	if figures.db != 6 {
		t.Errorf("read the masters of database %d", figures.db)
	}
}

func TestINFO_ShowsTheSectionsThatWereRequested(t *testing.T) {
	c, _ := informed(t)
	c.transcript(`
		> INFO replication CLUSTER
		< "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"
		> INFO nonsense
		< ""
	`)
	all := "[Server Clients Memory Persistence Stats Replication Cluster Dropin Locks Masters]"
	for _, line := range []string{"INFO", "INFO default", "INFO ALL", "INFO everything", "INFO cluster all"} {
		if got := headings(c.start(strings.Fields(line)...).read(t).Text); got != all {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestINFO_EveryDaemonHasARunIDOfItsOwn(t *testing.T) {
	ids := make(map[string]bool)
	for range 2 {
		id := newConversation(t).stats("server")["run_id"]
		if len(id) != 40 || strings.Trim(id, "0123456789abcdef") != "" {
			t.Errorf("run id %q", id)
		}
		ids[id] = true
	}
	if len(ids) != 2 {
		t.Error("two daemons have the same run id")
	}
}

func headings(info string) string {
	var names []string
	for _, line := range strings.Split(info, "\r\n") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			names = append(names, name)
		}
	}
	return "[" + strings.Join(names, " ") + "]"
}

func TestINFO_ShowsTheMapOfSeveralGroups(t *testing.T) {
	c := newConversation(t)
	c.table = newTable(commands.Deps{Slots: func() []slots.Served {
		return []slots.Served{
			{Range: slots.Range{First: 0, Last: 1000}, Group: "g1", Version: 5, Frozen: true, To: "g2", Rest: 41230 * time.Millisecond, Operations: 7},
			{Range: slots.Range{First: 1001, Last: 16379}, Group: "g1", Version: 5, Operations: 1 << 40},
			{Range: slots.Range{First: 16380, Last: 16383}, Group: "g1", Version: 5, Frozen: true, To: "g2"},
		}
	}})
	text := c.say("INFO slots")
	for _, line := range []string{"slot_ranges:3", "unfinished_slots:4", "slots0:slots=0-1000,group=g1,map=5,operations=7,to=g2,rest_ms=41230", "slots1:slots=1001-16379,group=g1,map=5,operations=1099511627776"} {
		if !strings.Contains(text, line+`\r\n`) {
			t.Errorf("%s is missing in %s", line, text)
		}
	}
}
