// Lock libraries that poll for a lock, which three clients with DLOCK … WAIT keep busy without a break.

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	pollTime = 30 * time.Second      // of each library
	holdTime = 20 * time.Millisecond // of each holder
	waiting  = 3                     // clients, through the first daemon
)

// places are where a library polls, and the aim for 99 of 100 acquires of one that tries every 100 ms.
var places = []struct {
	name  string
	limit time.Duration
}{{"same daemon", time.Second}, {"other daemon", 2 * time.Second}, {"on the masters", 5 * time.Second}}

// pollerRuns are the programs. Those that cannot use several masters say so by their mode.
func pollerRuns() []run {
	redisson := "{built}/java-redisson"
	return []run{
		{library: "redis-py", as: "one server", command: []string{"{built}/python-locks/bin/python", "-B", "{programs}/python-locks/poll.py", "redis-py"}},
		{library: "python-redis-lock", as: "one server", command: []string{"{built}/python-locks/bin/python", "-B", "{programs}/python-locks/poll.py", "python-redis-lock"}},
		{library: "node-redlock", as: "any", command: []string{"node", "{programs}/node-locks/poll.js"}, environ: []string{"NODE_PATH={built}/node-locks/node_modules"}},
		{library: "redsync", as: "any", command: []string{"{built}/go-locks/locks", "poll"}},
		{library: "Redisson", as: "any", command: []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", redisson + "/classes:" + redisson + "/dependency/*", "RedissonPoll"}},
	}
}

// polled are the times of one library in one place.
type polled struct {
	version string
	took    []time.Duration
	problem string
}

// show has the number of acquires, the median, and the 99th of 100, which of fewer is the longest.
func (p *polled) show() string {
	if len(p.took) == 0 {
		return "none"
	}
	slices.Sort(p.took)
	return fmt.Sprintf("%d: %d / %d ms", len(p.took), p.took[len(p.took)/2].Milliseconds(), p.longest().Milliseconds())
}

func (p *polled) longest() time.Duration { return p.took[(len(p.took)*99-1)/100] }

// pollAll measures each library after the other, in all places at once, and returns the table.
func pollAll(ctx context.Context, o options, s *stand, chosen []run) (string, error) {
	one, err := startDaemon(s, "polled-1", "--no-ttl", "lease")
	if err != nil {
		return "", err
	}
	defer one.process.terminate()
	two, err := startDaemon(s, "polled-2", "--no-ttl", "lease")
	if err != nil {
		return "", err
	}
	defer two.process.terminate()
	addresses := []string{one.address, two.address, s.list}
	var b strings.Builder
	b.WriteString("`make interop ARGS=\"-measure pollers\"` writes this table. Three clients of one daemon wait for a key all the time, each holds it for 20 ms. Beside them a library takes it with its own retries, holds it\n" +
		"for 20 ms, and tries again 20 ms later, for half a minute: how many times it got the key, the median and the 99th percentile of what it waited (of fewer than 100 the longest).\n" +
		"redis-py tries every 100 ms, redsync every 50 to 250, node-redlock every 100 to 300; python-redis-lock waits with `BLPOP`, Redisson for a message.\n\n")
	b.WriteString("| library | version |")
	for _, p := range places {
		fmt.Fprintf(&b, " %s, aim of a poll in 100 ms: %d s |", p.name, int(p.limit.Seconds()))
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for i, r := range chosen {
		results, stop := make([]polled, len(places)), make(chan struct{})
		var running sync.WaitGroup
		for at := range places {
			if at == 2 && r.as == "one server" {
				continue
			}
			key := fmt.Sprint("polled:", i, ":", at)
			for w := range waiting {
				running.Go(func() { contend(one.address, key, fmt.Sprint("waiting-client-", w), 0, holdTime, stop) })
			}
			running.Go(func() { results[at].play(ctx, o, r, addresses[at], key, stop) })
		}
		time.Sleep(pollTime)
		close(stop)
		running.Wait()
		fmt.Fprintf(&b, "| %s | %s |", r.library, results[0].version)
		for at := range places {
			if at == 2 && r.as == "one server" {
				b.WriteString(" uses one server |")
				continue
			}
			p := &results[at]
			fmt.Println(r.library, places[at].name, p.show(), p.problem)
			if p.problem != "" {
				return "", fmt.Errorf("%s, %s: %s", r.library, places[at].name, p.problem)
			}
			fmt.Fprintf(&b, " %s |", p.show())
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// play runs one program until stop.
func (p *polled) play(ctx context.Context, o options, r run, address, key string, stop <-chan struct{}) {
	cmd := commandOf(ctx, o, r)
	cmd.Env = append(append(withoutOptions(os.Environ()), cmd.Env...), "REDLOCKD_ADDR="+address, "REDLOCKD_KEY="+key)
	cmd.SysProcAttr = ownGroup()
	in, err := cmd.StdinPipe()
	if err != nil {
		p.problem = err.Error()
		return
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.problem = err.Error()
		return
	}
	go func() {
		<-stop
		in.Close()
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "library":
			p.version = rest
		case "took":
			ms, _ := strconv.Atoi(rest)
			p.took = append(p.took, time.Duration(ms)*time.Millisecond)
		}
	}
	cmd.Wait()
	if len(p.took) == 0 {
		p.problem = "it never got the key"
	}
}
