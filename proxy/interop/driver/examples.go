// The examples of commands/examples, those of the packages in commands/clients, and their tests. Another client holds the lock until
// the program waits for it. The driver compares every line that the program prints, and
// then takes the lock. It also takes the lock away from a package, and stops its daemon.

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	exampleKey = "invoice:7"
	exampleTTL = 30000 // milliseconds
)

// exampleLine is what a program prints for a step, and what the driver does then.
type exampleLine struct {
	step string
	line *regexp.Regexp
	then func(*daemon) error // nil: nothing
}

// exampleLines are what every example prints: one line for each step.
var exampleLines = []exampleLine{
	{"granted", regexp.MustCompile(`^granted fence (?P<fence>\d{16,}), validity (?P<validity>\d+) ms$`), nil},
	{"confirmed", regexp.MustCompile(`^confirmed validity (?P<validity>\d+) ms$`), nil},
	{"update", regexp.MustCompile(`^update (?:1 row|UPDATE invoices SET state = 'sent', fence = (?:\$1|\?) WHERE id = 7 AND fence <= (?:\$1|\?)) with fence (?P<fence>\d+)$`), nil},
	{"released", regexp.MustCompile(`^released 1$`), nil},
}

var (
	helperGranted = regexp.MustCompile(`^granted fence \d{16,}$`)
	helperLost    = regexp.MustCompile(`^lost$`)
)

// testLines are what the tests of a package print.
var testLines = []exampleLine{{"tests", regexp.MustCompile(`^(passed|PASS)$`), nil}}

// helperLines are what the example of every package prints. Its second and third piece of work last an hour,
// and its read timeout is longer than the limit of a run: only the helper itself can end them.
var helperLines = []exampleLine{
	{"granted", helperGranted, nil},
	{"released", regexp.MustCompile(`^released$`), nil},
	{"granted again", helperGranted, (*daemon).force},
	{"lost by DFORCE", helperLost, nil},
	{"granted a third time", helperGranted, (*daemon).pause},
	{"lost without a reply", helperLost, (*daemon).resume},
}

// workerLines are what the example of work prints: its first attempt fails.
var workerLines = []exampleLine{
	{"attempt", regexp.MustCompile(`^attempt 1 with fence \d{16,}$`), nil},
	{"failed", regexp.MustCompile(`^attempt 1 failed: no paper$`), nil},
	{"attempt again", regexp.MustCompile(`^attempt 2 with fence \d{16,}$`), nil},
	{"done", regexp.MustCompile(`^done s3://reports/2026-11$`), nil},
	{"done before", regexp.MustCompile(`^done before s3://reports/2026-11$`), nil},
}

// queueLines are what the example of a queue prints.
var queueLines = []exampleLine{
	{"granted", helperGranted, nil},
	{"shown", regexp.MustCompile(`^held by worker-1, 0 in the queue$`), nil},
	{"released", regexp.MustCompile(`^released 1$`), nil},
}

// readmeLines are what the example of README.md prints.
var readmeLines = []exampleLine{{"update", regexp.MustCompile(`^sent with fence \d{16,}$`), nil}}

// exampleSteps are the steps of the lines, and what the driver sees of the lock.
func (r run) exampleSteps() (steps []string) {
	for _, l := range r.prints {
		steps = append(steps, l.step)
	}
	if r.alone {
		return steps
	}
	return append(append([]string{"waited"}, steps...), "free")
}

// force releases the lock regardless of its holder.
func (d *daemon) force() error {
	_, err := d.ask("DFORCE "+exampleKey+"\r\n", ":1\r\n")
	return err
}

// pause stops the daemon's process: its connections stay open, and it sends no replies.
func (d *daemon) pause() error { return d.process.cmd.Process.Signal(syscall.SIGSTOP) }

func (d *daemon) resume() error { return d.process.cmd.Process.Signal(syscall.SIGCONT) }

// playExample gives the program a daemon, and keys of its own on the masters.
func playExample(ctx context.Context, o options, s *stand, r run, number int) (out outcome) {
	began := time.Now()
	out.run = r
	defer func() { out.took = time.Since(began) }()
	own := []string{fmt.Sprintf("--group=example-%d", number), fmt.Sprintf("--key-prefix=example-%d:", number)}
	if err := s.bootstrap(ctx, own...); err != nil {
		out.problem = err.Error()
		return out
	}
	d, err := startDaemon(s, strconv.Itoa(number), own...)
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { d.process.terminate() }()
	defer d.resume() // a stopped process does not end
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	out.run.command = append(slices.Clone(r.command), d.address)
	if r.alone {
		out.follow(ctx, o, d, nil)
	} else {
		out.runExample(ctx, o, d)
	}
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
	if err := d.resume(); err != nil {
		out.fail("%v", err)
	}
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
func (out *outcome) readExample(says io.Reader, d *daemon) {
	lines, fence := bufio.NewScanner(says), ""
	for _, expected := range out.run.prints {
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
		if expected.then == nil {
			continue
		}
		if err := expected.then(d); err != nil {
			out.fail("step %s: %v", expected.step, err)
			return
		}
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
	modules, pythonPath := []string{"NODE_PATH={built}/node-redis/node_modules"}, []string{"PYTHONPATH={clients}/python"}
	packages := []run{
		{library: "redis-py", remark: "redis_py_lock.py", command: append(slices.Clone(python), "{examples}/redis_py_lock.py"), environ: pythonPath},
		{library: "node-redis", remark: "node_redis_lock.js", command: []string{"node", "{examples}/node_redis_lock.js"}, environ: modules},
		{library: "go-redis", remark: "goredis_lock/main.go", command: []string{"{built}/examples/goredis_lock"}},
		{library: "Jedis", remark: "JedisLockExample.java", command: java("JedisLockExample", "jedis")},
	}
	for _, r := range packages {
		r.as, r.prints = "package", helperLines
		all = append(all, r)
	}
	tests := []run{
		{library: "redis-py", remark: "python", command: append(slices.Clone(python), "{clients}/python/tests/test_lock.py"), environ: pythonPath},
		{library: "node-redis", remark: "node", command: []string{"node", "--test-reporter=tap", "--test-reporter-destination=stderr", "{clients}/node/test/lock.test.js"}, environ: modules},
		{library: "go-redis", remark: "go", command: []string{"{built}/examples/client.test"}},
		{library: "Jedis", remark: "java", command: java("redlockd.client.JedisLockTest", "jedis")},
	}
	for _, r := range tests {
		r.as, r.prints, r.alone, r.remark = "package tests", testLines, true, "../clients/"+r.remark
		all = append(all, r)
	}
	all = append(all,
		run{library: "node-redis", as: "example, work", remark: "worker.js", command: []string{"node", "{examples}/worker.js"}, environ: []string{"NODE_PATH={built}/node-redis/node_modules"}, prints: workerLines, alone: true},
		run{library: "redis-rb", as: "example, queue", remark: "queued.rb", command: []string{"ruby", "{examples}/queued.rb"}, prints: queueLines})
	for i, r := range all {
		if r.as == "" {
			all[i].as = "example"
		}
		if r.prints == nil {
			all[i].prints = exampleLines
		}
		all[i].example = true
		all[i].remark = fmt.Sprintf("[%s](%s)", strings.TrimPrefix(r.remark, "../"), path.Join("../../commands/examples", r.remark))
	}
	return all
}

// readmeRuns has the example of README.md.
func readmeRuns() []run {
	return []run{{
		library: "redis-py", as: "example of README.md", example: true, prints: readmeLines, remark: "[README.md](../../README.md)",
		command: []string{"{built}/python-redis-8/bin/python", "-B", "{programs}/python-redis/readme.py"},
	}}
}

// recipes of commands/COOKBOOK.md.
const recipes = 8

// recipeRuns play each recipe as its promise needs it: in several processes, one of which is killed.
func recipeRuns() (all []run) {
	for number := 1; number <= recipes; number++ {
		kept := regexp.MustCompile(fmt.Sprintf("^recipe %d keeps its promise$", number))
		all = append(all, run{
			library: "redis-py", as: fmt.Sprintf("recipe %d", number), example: true, alone: true,
			prints: []exampleLine{{"promise", kept, nil}}, remark: "[COOKBOOK.md](../../commands/COOKBOOK.md)",
			command: []string{"{built}/python-redis-8/bin/python", "-B", "{programs}/python-redis/cookbook.py", strconv.Itoa(number)},
		})
	}
	return all
}
