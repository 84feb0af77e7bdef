package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/sim/fake"
)

// server is one master: a process with a memory and a clock.
type server struct {
	fake.Master
	world  *World
	name   string
	offset int64 // µs its clock is ahead of the world's
	home   int64 // what offset is while the clock is not set
	ppm    int64 // how much faster it runs

	process     int // counts restarts
	runID       string
	infoText    string // INFO's text, but for its counts
	evicted     int64  // keys, by this process
	durable     bool
	promoted    bool // was a replica, and lacks what had not reached it
	up          bool
	stopped     bool // SIGSTOP
	backlog     []*flight
	links       map[int64]*simLink // by CLIENT ID
	lastID      int64
	parted      time.Duration // when a connection to it ended last
	snapshot    fake.Memory
	steps       []*clockStep
	doubted     time.Duration             // until then its votes need not count, see doubt
	rippling    bool                      // its clock is being moved by little steps
	clockSeenAt map[*daemon]time.Duration // when a daemon saw its clock last
	tracked     map[string][]*simLink     // connections that receive a key's next change
}

// start begins a process with what is left of the memory.
func (s *server) start(m fake.Memory) {
	s.process++
	s.Memory, s.Loaded, s.links = m, map[string]bool{}, map[int64]*simLink{}
	s.tracked, s.clockSeenAt = map[string][]*simLink{}, map[*daemon]time.Duration{}
	s.lastID, s.up, s.stopped, s.backlog = 0, true, false, nil
	s.Executed, s.evicted = 0, 0
	s.runID = fmt.Sprintf("%030x%010x", s.process, s.name[0])
	s.infoText = s.describe()
}

func (s *server) describe() string {
	second, logs := "-1", "0"
	if s.promoted {
		second = "4711"
	}
	if s.durable {
		logs = "1"
	}
	return "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + s.runID +
		"\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:" + logs +
		"\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n" +
		"# Replication\r\nrole:master\r\nsecond_repl_offset:" + second + "\r\n"
}

// newServer is a master of a world that has not started.
func newServer(w *World, name string) *server {
	s := &server{world: w, name: name, durable: w.Scenario.Durable}
	s.Scripts = w.lab.scripts
	s.Own = map[string]func([]string) pool.Reply{"INFO": s.info, "CONFIG": s.config}
	s.Missing = func(a []string) {
		w.violate("masters", "", "a simulated master does not have the command "+strings.Join(a, " ")+": add it to fake/commands.go")
	}
	if w.Scenario.MaxWait > 0 {
		s.Changed = s.announce
	}
	return s
}

// execute runs one command of a connection.
func (s *server) execute(l *simLink, a []string) pool.Reply {
	switch a[0] {
	case "INFO":
		s.evictBeforeInfo(a)
	case "CLIENT":
		s.Executed++
		return s.client(l, a)
	}
	return s.Execute(a)
}

func (s *server) client(l *simLink, a []string) pool.Reply {
	switch a[1] {
	case "ID":
		return fake.Number(l.id)
	case "CACHING":
		l.caching = true
	case "KILL":
		id, _ := strconv.ParseInt(a[3], 10, 64)
		if victim := s.links[id]; victim != nil && victim != l {
			victim.sever()
			return fake.Number(1)
		}
		return fake.Number(0)
	}
	return fake.OK
}

func (s *server) info(a []string) pool.Reply {
	if len(a) > 1 && a[1] != "stats" {
		return fake.Text(s.infoText)
	}
	return fake.Text(s.infoText + "# Stats\r\ntotal_commands_processed:" + strconv.FormatInt(s.Executed, 10) +
		"\r\nevicted_keys:" + strconv.FormatInt(s.evicted, 10) + "\r\n")
}

func (s *server) config(a []string) pool.Reply {
	if a[2] == "maxmemory-policy" {
		return fake.List(fake.Text(a[2]), fake.Text("noeviction"))
	}
	on, sync := "no", "everysec"
	if s.durable {
		on, sync = "yes", "always"
	}
	return fake.List(fake.Text("appendonly"), fake.Text(on), fake.Text("appendfsync"), fake.Text(sync), fake.Text("no-appendfsync-on-rewrite"), fake.Text("no"))
}

// readClock fixes the master's moment for the commands that follow.
func (s *server) readClock(world int64) {
	s.Micros = epoch + world + world*s.ppm/1_000_000 + s.offset
	s.Now = s.Micros / 1000
}

// epoch is when a world begins, µs since 1970: a date like any other.
const epoch = 1_800_000_000_000_000

// expireActively drops what has expired, as a running server does by itself.
func (s *server) expireActively() {
	for key := range s.Memory {
		s.Lookup(key)
	}
}

// now is the server's clock, ms.
func (s *server) now() int64 {
	world := int64(s.world.now / time.Microsecond)
	return (epoch + world + world*s.ppm/1_000_000 + s.offset) / 1000
}

// hasWindow reports whether a key is free for clients past the daemons, or was a moment ago: until its daemon's
// timer fires, no waiter has to have it.
func (s *server) hasWindow(key string) bool {
	const moment = 30 // ms
	v := s.Memory["redlockd:qx:"+key]
	return v != nil && slices.ContainsFunc(v.Scores, func(one fake.Scored) bool {
		return one.Member == "window" && int64(one.Score)+moment >= s.now()
	})
}
