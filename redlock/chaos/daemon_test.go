package chaos

// daemon_test.go: one redlockd process, its replies, statistics and log.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redlockd/pool/faulty"
)

// daemon listens at the same address through all its restarts.
type daemon struct {
	*faulty.Program
	stand *stand
	links []*faulty.Relay // to each master
	words []string        // of its command line
	admin string          // address of its admin endpoint; "": it has none
}

func (s *stand) startDaemon() *daemon {
	s.t.Helper()
	d := &daemon{stand: s}
	addresses := make([]string, len(s.masters))
	for i, m := range s.masters {
		if s.plan.aliased && i == len(s.masters)-1 {
			m = s.masters[len(s.daemons)%2]
		}
		link := faulty.NewRelay(m.Addr())
		link.Delay(s.distance(len(s.daemons), i))
		s.t.Cleanup(link.Close)
		d.links = append(d.links, link)
		addresses[i] = link.Addr()
	}
	listen := faulty.FreeAddr(s.t)
	d.words = append([]string{"--listen", listen, "--max-clients-per-address", "0"}, s.settings(addresses)...)
	if s.plan.timeout > 0 {
		d.words = append(d.words, "--master-timeout", s.plan.timeout.String())
	}
	if s.plan.admin {
		d.admin = faulty.FreeAddr(s.t)
		d.words = append(d.words, "--admin-listen", d.admin)
	}
	// Little garbage, so that what is used is what is kept.
	binary := s.binary
	if s.former != "" && len(s.daemons) == 0 {
		binary = s.former
	}
	d.Program = faulty.StartProgram(s.t, listen, binary, environment("GOGC=25", "REDLOCKD_DRAIN_GRACE=0"), d.words...)
	return d
}

// ask sends one command on a connection of its own.
func (d *daemon) ask(words ...any) (any, error) {
	c, err := faulty.Dial(d.Addr(), callTimeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(words...)
}

// info is one field of its INFO, "" if it cannot be had.
func (d *daemon) info(section, name string) string {
	reply, _ := d.ask("INFO", section)
	text, _ := reply.(string)
	return field(text, name)
}

// hasVoteOf reports whether it runs and a master votes for it.
func (d *daemon) hasVoteOf(master int) bool {
	return strings.Contains(d.info("masters", fmt.Sprint("master", master)), ",state=voting,")
}

// awaitVotes waits until every master votes for this daemon.
func (d *daemon) awaitVotes() {
	d.stand.t.Helper()
	want := len(d.stand.masters)
	if d.stand.plan.aliased {
		want--
	}
	d.awaitVotesOf(want)
}

// awaitVotesOf waits until so many masters vote for this daemon.
func (d *daemon) awaitVotesOf(want int) {
	d.stand.t.Helper()
	if !eventually(func() bool { n, _ := strconv.Atoi(d.info("masters", votesField)); return n >= want }) {
		reply, err := d.ask("INFO", "masters")
		d.stand.t.Errorf("not %d masters vote for daemon %s after %v: %v %v", want, d.Addr(), waitTimeout, reply, err)
	}
}

// votesField of INFO is how many masters vote for a daemon.
const votesField = "masters_voting"

// hasPendingReleases reports whether it has anything left to send to a master.
func (d *daemon) hasPendingReleases() bool {
	reply, err := d.ask("INFO", "masters")
	text, ok := reply.(string)
	n := len(d.stand.masters)
	return err != nil || !ok || strings.Count(text, ",queued=0,") != n || strings.Count(text, ",pending_releases=0,") != n
}

// descriptors that it has open.
func (d *daemon) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.Pid()))
	if err != nil {
		return -1
	}
	return len(open)
}

// goroutines ends the daemon and counts what it was doing: the runtime prints
// them all when it is asked to quit. The runtime's own ones, and workers of the pool that
// have nothing to do and end a little later, do not count. Those of its connections to masters
// are apart: whether one is idle at that moment is chance.
func (d *daemon) goroutines() (n, ofConnections int) {
	before := len(d.Output())
	d.End(syscall.SIGQUIT)
	for _, one := range strings.Split(d.Output()[before:], "\ngoroutine ")[1:] {
		worker := strings.Contains(one, "(*goWorker).run")
		switch {
		case strings.Contains(one, "created by runtime."), worker && !strings.Contains(one, "redlockd/"):
		case worker, strings.Contains(one, "created by github.com/redis/rueidis.(*pipe)"):
			ofConnections++
		default:
			n++
		}
	}
	return n, ofConnections
}

// complaints are lines of its log that nothing may cause.
func (d *daemon) complaints() string {
	var found []string
	for line := range strings.Lines(d.Output()) {
		for _, word := range []string{"level=ERROR", "panic", "fatal error", "DATA RACE"} {
			if strings.Contains(line, word) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return strings.Join(found, "\n")
}

// rest is the time in which the runtime and its pools come to themselves.
const rest = 3 * time.Second
