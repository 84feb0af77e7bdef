package chaos

// machine_test.go: the times at which this machine did not run what was ready to run. Then
// a daemon is late without a fault: its masters' answers wait longer than the master
// timeout to be read, and it gives them up.

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// standstill is a time in which a process was kept from running.
type standstill struct {
	daemon   int // allDaemons: this process, and others alike
	from, to time.Duration
}

const allDaemons = -1

// watchMachine measures it in this process, and reads from the kernel how long the
// threads of each daemon have waited for a processor.
func (n *nemesis) watchMachine(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for i, d := range n.stand.daemons {
		all.Go(func() { n.watchProcess(ctx, i, d.Pid) })
	}
	const beat, late = 5 * time.Millisecond, 20 * time.Millisecond
	for from := n.since(); pause(ctx, beat); from = n.since() {
		if to := n.since(); to > from+beat+late {
			n.stands(standstill{allDaemons, from + beat, to})
		}
	}
}

// watchProcess compares two looks. A thread that waited for long may have waited at
// the end of the time between them as well as at its beginning: the end is taken,
// and the look is short.
func (n *nemesis) watchProcess(ctx context.Context, i int, pid func() int) {
	const beat, late = 50 * time.Millisecond, 20 * time.Millisecond
	before := queued(pid())
	for pause(ctx, beat) {
		now := queued(pid())
		at := n.since()
		var longest time.Duration
		for thread, waited := range now {
			if was, ok := before[thread]; ok {
				longest = max(longest, waited-was)
			}
		}
		if longest > late {
			n.stands(standstill{i, at - longest, at})
		}
		before = now
	}
}

func (n *nemesis) stands(s standstill) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalls = append(n.stalls, s)
}

// queued is how long each thread of a process has waited for a processor, since it
// began; empty if the kernel does not report it.
func queued(pid int) map[string]time.Duration {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := make(map[string]time.Duration, len(threads))
	for _, thread := range threads {
		text, err := os.ReadFile(dir + "/" + thread.Name() + "/schedstat")
		words := strings.Fields(string(text))
		if err != nil || len(words) < 2 {
			continue
		}
		if waited, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			all[thread.Name()] = time.Duration(waited)
		}
	}
	return all
}

// stoodLocked is for how long a daemon was kept from running between two instants.
func (n *nemesis) stoodLocked(daemon int, from, to time.Duration) time.Duration {
	var all, one time.Duration
	for _, s := range n.stalls {
		part := max(0, min(s.to, to)-max(s.from, from))
		switch s.daemon {
		case allDaemons:
			all += part
		case daemon:
			one += part
		}
	}
	return max(all, one)
}

func (n *nemesis) stood(daemon int, from, to time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stoodLocked(daemon, from, to)
}
