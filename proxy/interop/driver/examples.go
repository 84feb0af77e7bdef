// The examples of commands/examples. Another client holds the lock until the example
// waits for it. The driver compares every line that the example prints, and then takes
// the lock.

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	exampleKey = "invoice:7"
	exampleTTL = 30000 // milliseconds
)

// exampleLines are what every example prints: one line for each step.
var exampleLines = []struct {
	step string
	line *regexp.Regexp
}{
	{"granted", regexp.MustCompile(`^granted fence (?P<fence>\d{16,}), validity (?P<validity>\d+) ms$`)},
	{"confirmed", regexp.MustCompile(`^confirmed validity (?P<validity>\d+) ms$`)},
	{"update", regexp.MustCompile(`^update (?:1 row|UPDATE invoices SET state = 'sent', fence = (?:\$1|\?) WHERE id = 7 AND fence <= (?:\$1|\?)) with fence (?P<fence>\d+)$`)},
	{"released", regexp.MustCompile(`^released 1$`)},
}

// exampleSteps are the steps of exampleLines, and what the driver sees of the lock.
var exampleSteps = []string{"waited", "granted", "confirmed", "update", "released", "free"}

// playExample gives the program a daemon, and keys of its own on the masters.
func playExample(ctx context.Context, o options, s *stand, r run, number int) (out outcome) {
	began := time.Now()
	out.run = r
	defer func() { out.took = time.Since(began) }()
	prefix := fmt.Sprintf("--key-prefix=example-%d:", number)
	if err := s.bootstrap(ctx, prefix); err != nil {
		out.problem = err.Error()
		return out
	}
	d, err := startDaemon(s, strconv.Itoa(number), prefix)
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { d.process.terminate() }()
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	out.run.command = append(slices.Clone(r.command), d.address)
	out.runExample(ctx, o, d)
	out.judge(false)
	if complaints := d.complaints(); complaints != "" {
		out.fail("the daemon's log: %s", complaints)
	}
	return out
}

// runExample holds the lock until the program waits, and takes it after the program's end.
func (out *outcome) runExample(ctx context.Context, o options, d *daemon) {
	holder, err := d.hold(exampleKey)
	if err != nil {
		out.fail("%v", err)
		return
	}
	running, ended := context.WithCancel(ctx)
	waited := make(chan error, 1)
	go func() {
		err := d.untilWaited(running)
		holder.Close() // which releases the lock
		waited <- err
	}()
	out.follow(ctx, o, d, nil)
	ended()
	if err := <-waited; err != nil {
		out.fail("%v", err)
		return
	}
	out.passed = append(out.passed, "waited")
	// The wait is shorter than what an example's lock lasts without a release.
	if _, err := d.ask("DLOCK "+exampleKey+" 1000 WAIT 5000\r\n", "*3\r\n"); err != nil {
		out.fail("the lock is not free after the example: %v", err)
		return
	}
	out.passed = append(out.passed, "free")
}

// readExample compares the program's lines.
func (out *outcome) readExample(says io.Reader) {
	lines, fence := bufio.NewScanner(says), ""
	for _, expected := range exampleLines {
		if !lines.Scan() {
			return // judge names the missing steps
		}
		found := expected.line.FindStringSubmatch(lines.Text())
		if found == nil {
			out.fail("step %s: the line is %q, wanted %s", expected.step, lines.Text(), expected.line)
			return
		}
		for i, name := range expected.line.SubexpNames() {
			value, _ := strconv.Atoi(found[i])
			switch {
			case name == "validity" && (value < 1 || value > exampleTTL):
				out.fail("step %s: validity %s, wanted 1 to %d", expected.step, found[i], exampleTTL)
			case name == "fence" && fence != "" && found[i] != fence:
				out.fail("step %s: fence %s, granted was %s", expected.step, found[i], fence)
			case name == "fence":
				fence = found[i]
			}
		}
		out.passed = append(out.passed, expected.step)
	}
	if lines.Scan() {
		out.fail("a line after the last step: %q", lines.Text())
	}
}

// exampleRuns in the order of the table.
func exampleRuns() []run {
	java := func(class, library string) []string {
		dir := "{built}/java-" + library
		return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", dir + "/classes:" + dir + "/dependency/*", class}
	}
	python := []string{"{built}/python-redis-8/bin/python", "-B"}
	all := []run{
		{library: "redis-py", as: "example", remark: "redis_py.py", command: append(slices.Clone(python), "{examples}/redis_py.py")},
		{library: "redis-py", as: "example, asyncio", remark: "redis_py_asyncio.py", command: append(slices.Clone(python), "{examples}/redis_py_asyncio.py")},
		{library: "ioredis", remark: "ioredis.js", command: []string{"node", "{examples}/ioredis.js"}, environ: []string{"NODE_PATH={built}/node-ioredis/node_modules"}},
		{library: "node-redis", remark: "node_redis.js", command: []string{"node", "{examples}/node_redis.js"}, environ: []string{"NODE_PATH={built}/node-redis/node_modules"}},
		{library: "go-redis", remark: "goredis/main.go", command: []string{"{built}/examples/goredis"}},
		{library: "rueidis", remark: "rueidis/main.go", command: []string{"{built}/examples/rueidis"}},
		{library: "Jedis", remark: "JedisExample.java", command: java("JedisExample", "jedis")},
		{library: "Lettuce", remark: "LettuceExample.java", command: java("LettuceExample", "lettuce")},
		{library: "redis-rb", remark: "redis_rb.rb", command: []string{"ruby", "{examples}/redis_rb.rb"}},
		{library: "phpredis", remark: "phpredis.php", command: []string{"php", "{examples}/phpredis.php"}},
		{library: "redis-rs", remark: "redis_rs.rs", command: []string{"{built}/rust-redis/debug/example"}},
	}
	for i, r := range all {
		if r.as == "" {
			all[i].as = "example"
		}
		all[i].example = true
		all[i].remark = fmt.Sprintf("[%s](../../commands/examples/%s)", r.remark, r.remark)
	}
	return all
}
