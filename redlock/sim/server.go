package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
)

// server is one master: a process with a memory and a clock.
type server struct {
	world  *World // nil in tests of the master alone
	engine *engine
	name   string
	memory memory
	loaded map[string]bool // scripts this process knows
	now    int64           // ms of its own clock, read once per command
	micros int64           // the same in µs
	offset int64           // µs its clock is ahead of the world's
	home   int64           // what offset is while nobody sets the clock
	ppm    int64           // how much faster it runs

	process     int // counts restarts
	runID       string
	infoText    string // INFO's text, but for its counts
	executed    int64  // commands, by this process
	evicted     int64  // keys, by this process
	durable     bool
	promoted    bool // was a replica, and lacks what had not reached it
	up          bool
	stopped     bool // SIGSTOP
	denied      bool // the daemons' user may not say ZADD
	backlog     []*flight
	links       map[int64]*simLink // by CLIENT ID
	lastID      int64
	parted      time.Duration // when a connection to it ended last
	snapshot    memory
	steps       []*clockStep
	rippling    bool                      // its clock is being moved by little steps
	clockSeenAt map[*daemon]time.Duration // when a daemon saw its clock last
	tracked     map[string][]*simLink     // who hears of a key's next change
}

// born starts a process with what is left of the memory.
func (s *server) start(m memory) {
	s.process++
	s.memory, s.loaded, s.links = m, map[string]bool{}, map[int64]*simLink{}
	s.tracked, s.clockSeenAt = map[string][]*simLink{}, map[*daemon]time.Duration{}
	s.lastID, s.up, s.stopped, s.backlog = 0, true, false, nil
	s.executed, s.evicted = 0, 0
	s.runID = fmt.Sprintf("%030x%010x", s.process, hash(s.name))
	s.infoText = s.describe()
}

func hash(name string) (n uint32) {
	for i := range len(name) {
		n = n*31 + uint32(name[i])
	}
	return n
}

func (s *server) describe() string {
	second := "-1"
	if s.promoted {
		second = "4711"
	}
	return "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + s.runID +
		"\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:" + bit(s.durable) +
		"\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n" +
		"# Replication\r\nrole:master\r\nsecond_repl_offset:" + second + "\r\n"
}

func bit(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// execute runs one command; l is nil inside of a script.
func (s *server) execute(l *simLink, a []string) pool.Reply {
	s.executed++
	if l != nil && a[0] == "INFO" {
		s.evictBeforeInfo(a)
	}
	if s.denied && a[0] == "ZADD" {
		return refusal("NOPERM this user has no permissions to run the 'zadd' command")
	}
	if handle := handlers[a[0]]; handle != nil {
		r := handle(s, a)
		s.changed(a, r)
		return r
	}
	switch a[0] {
	case "EVALSHA":
		if !s.loaded[a[1]] {
			return refusal("NOSCRIPT No matching script. Please use EVAL.")
		}
		return s.engine.run(s, a[1], a)
	case "EVAL", "SCRIPT":
		script := a[1]
		if a[0] == "SCRIPT" {
			script = a[2]
		}
		sha, err := s.engine.load(script)
		if err != nil {
			return refusal("ERR " + err.Error())
		}
		s.loaded[sha] = true
		if a[0] == "SCRIPT" {
			return text(sha)
		}
		return s.engine.run(s, sha, a)
	case "CLIENT":
		return s.client(l, a)
	}
	if s.world != nil {
		s.world.violate("masters", "", "a simulated master does not know the command "+strings.Join(a, " ")+": add it to commands.go")
	}
	return refusal("ERR unknown command '" + a[0] + "'")
}

func (s *server) client(l *simLink, a []string) pool.Reply {
	switch a[1] {
	case "ID":
		return number(l.id)
	case "CACHING":
		l.caching = true
	case "KILL":
		id, _ := strconv.ParseInt(a[3], 10, 64)
		if victim := s.links[id]; victim != nil && victim != l {
			victim.sever()
			return number(1)
		}
		return number(0)
	}
	return ok
}

func (s *server) time([]string) pool.Reply {
	return list(text(strconv.FormatInt(s.micros/1_000_000, 10)), text(strconv.FormatInt(s.micros%1_000_000, 10)))
}

func (s *server) info(a []string) pool.Reply {
	if len(a) > 1 && a[1] != "stats" {
		return text(s.infoText)
	}
	return text(s.infoText + "# Stats\r\ntotal_commands_processed:" + strconv.FormatInt(s.executed, 10) +
		"\r\nevicted_keys:" + strconv.FormatInt(s.evicted, 10) + "\r\n")
}

func (s *server) config(a []string) pool.Reply {
	if a[2] == "maxmemory-policy" {
		return list(text(a[2]), text("noeviction"))
	}
	on, sync := "no", "everysec"
	if s.durable {
		on, sync = "yes", "always"
	}
	return list(text("appendonly"), text(on), text("appendfsync"), text(sync), text("no-appendfsync-on-rewrite"), text("no"))
}

// readClock fixes the master's moment for the commands that follow.
func (s *server) readClock(world int64) {
	s.micros = epoch + world + world*s.ppm/1_000_000 + s.offset
	s.now = s.micros / 1000
}

// epoch is when a world begins, µs since 1970: a date like any other.
const epoch = 1_800_000_000_000_000

// expireActively drops what has expired, as a running server does by itself.
func (s *server) expireActively() {
	for key := range s.memory {
		s.lookup(key)
	}
}
