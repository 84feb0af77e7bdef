// A rolling restart: two daemons behind a TCP balancer restart, one after the other, while each
// library locks with its defaults. The programs of the stories do that with REDLOCKD_ROLLING.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// checkInterval is that of the balancer's checks of /readyz.
	checkInterval = 500 * time.Millisecond
	// settleTime is how long clients lock before, between and after the restarts.
	settleTime = 3 * time.Second
)

// balanced is a daemon behind the balancer.
type balanced struct {
	*daemon
	admin string
	ready atomic.Bool
}

func startBalanced(s *stand, name string) (*balanced, error) {
	admin := net.JoinHostPort("127.0.0.1", anyPort())
	d, err := startDaemon(s, name, "--admin-listen", admin, "--drain-grace", "5s")
	if err != nil {
		return nil, err
	}
	return &balanced{daemon: d, admin: admin}, nil
}

// check asks as a balancer does.
func (b *balanced) check() bool {
	response, err := http.Get("http://" + b.admin + "/readyz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// balancer forwards connections to the daemons that are ready, in turn.
type balancer struct {
	net.Listener
	daemons []*balanced
	next    atomic.Int64
	refused atomic.Int64
}

func newBalancer(daemons ...*balanced) (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{Listener: l, daemons: daemons}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.forward(c)
		}
	}()
	return b, nil
}

// watch checks the daemons until ctx ends.
func (b *balancer) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, d := range b.daemons {
			d.ready.Store(d.check())
		}
		time.Sleep(checkInterval)
	}
}

func (b *balancer) forward(c net.Conn) {
	defer c.Close()
	for range b.daemons {
		d := b.daemons[int(b.next.Add(1))%len(b.daemons)]
		if !d.ready.Load() {
			continue
		}
		out, err := net.Dial("tcp", d.address)
		if err != nil {
			continue
		}
		go func() { io.Copy(out, c); out.Close() }()
		io.Copy(c, out)
		return
	}
	b.refused.Add(1)
}

// rolled has what a program has counted.
type rolled struct {
	run                           run
	version                       string
	pairs, waits, refused, failed int
	why                           []string
	problem                       string
}

func (r *rolled) String() string {
	return fmt.Sprintf("%-34s %-10s pairs %d waits %d refused %d failed %d %s %s", r.run.name(), r.version, r.pairs, r.waits, r.refused, r.failed, strings.Join(r.why, "; "), r.problem)
}

// needs names the setting of a library whose commands may fail with its defaults as a connection closes.
var needs = map[string]string{
	"rueidis":    "repeats by itself only what reads: after an error of the connection send it again, with the same `TOKEN`",
	"redigo":     "by a pool with `TestOnBorrow`, as its users do; it repeats nothing",
	"node-redis": "rejects what was on its way when the connection closed: send it again, with the same `TOKEN`",
	"Jedis":      "finds a closed connection in its pool when it uses it: `setTestOnBorrow(true)`",
}

// rollingRuns are the programs that can lock without end, of each library the newest version.
func rollingRuns() (all []run) {
	for _, r := range slices.Concat(goRuns(), pythonRuns(), nodeRuns(), javaRuns()) {
		switch first, _, _ := strings.Cut(r.as, " "); {
		case r.as == "legacy-class": // one connection, which threads cannot share
		case first == "4" || first == "5":
		default:
			all = append(all, r)
		}
	}
	borrows := javaRuns()[0]
	borrows.as, borrows.command = "test-on-borrow", append(slices.Clone(borrows.command[:len(borrows.command)-1]), "test-on-borrow")
	return append(all, borrows)
}

// roll measures and returns the table.
func roll(ctx context.Context, o options, s *stand, chosen []run) (string, error) {
	one, err := startBalanced(s, "rolling-1")
	if err != nil {
		return "", err
	}
	defer func() { one.process.terminate() }()
	two, err := startBalanced(s, "rolling-2")
	if err != nil {
		return "", err
	}
	defer func() { two.process.terminate() }()
	b, err := newBalancer(one, two)
	if err != nil {
		return "", err
	}
	defer b.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go b.watch(ctx)
	if err := b.await(one, true); err != nil {
		return "", err
	}
	results := make([]*rolled, len(chosen))
	ready, stop := make(chan struct{}, len(chosen)), make(chan struct{})
	var running sync.WaitGroup
	for i, r := range chosen {
		results[i] = &rolled{run: r}
		running.Go(func() { results[i].play(ctx, o, b.Addr().String(), i, ready, stop) })
	}
	for range chosen {
		<-ready
	}
	for i := range chosen {
		running.Go(func() {
			contend(b.Addr().String(), fmt.Sprint("rolling:", i, ":w"), "the-driver", 30*time.Millisecond, 30*time.Millisecond, stop)
		})
	}
	for _, d := range b.daemons {
		time.Sleep(settleTime)
		d.process.cmd.Process.Signal(syscall.SIGTERM)
		if err := b.await(d, false); err != nil {
			return "", err
		}
		<-d.process.exited
		if err := d.start(); err != nil {
			return "", err
		}
		if err := b.await(d, true); err != nil {
			return "", err
		}
	}
	time.Sleep(settleTime)
	close(stop)
	running.Wait()
	failed := 0
	for _, r := range results {
		fmt.Println(r)
		if r.problem != "" {
			failed++
		}
	}
	if n := b.refused.Load(); n > 0 {
		return "", fmt.Errorf("for %d connections there was no daemon", n)
	}
	if failed > 0 {
		return "", fmt.Errorf("%d programs failed", failed)
	}
	return rollingTable(results), nil
}

// contend takes a lock again and again, for hold, until stop.
func contend(address, key, token string, pause, hold time.Duration, stop <-chan struct{}) {
	var c net.Conn
	var replies *bufio.Reader
	ask := func(command string) string {
		if c == nil {
			var err error
			if c, err = net.Dial("tcp", address); err != nil {
				return ""
			}
			replies = bufio.NewReader(c)
		}
		c.SetDeadline(time.Now().Add(replyPatience))
		fmt.Fprint(c, command) // an error shows in the read
		line, err := replies.ReadString('\n')
		for range 4 {
			if line == "*3\r\n" && err == nil {
				_, err = replies.ReadString('\n')
			}
		}
		if err != nil || strings.HasPrefix(line, "-SHUTDOWN") {
			c.Close()
			c = nil
		}
		return line
	}
	for {
		select {
		case <-stop:
			if c != nil {
				c.Close()
			}
			return
		case <-time.After(pause):
		}
		if ask("DLOCK "+key+" 5000 TOKEN "+token+" WAIT 2000\r\n") == "*3\r\n" {
			time.Sleep(hold)
		}
		ask("DUNLOCK " + key + " " + token + "\r\n")
	}
}

// await waits until the balancer sees a daemon so.
func (b *balancer) await(d *balanced, ready bool) error {
	for end := time.Now().Add(startPatience); d.ready.Load() != ready; time.Sleep(lookInterval) {
		if time.Now().After(end) {
			return fmt.Errorf("%s is not ready=%t", d.address, ready)
		}
	}
	return nil
}

// play runs one program to its end.
func (r *rolled) play(ctx context.Context, o options, address string, number int, ready chan<- struct{}, stop <-chan struct{}) {
	said := sync.OnceFunc(func() { ready <- struct{}{} })
	defer said()
	cmd := commandOf(ctx, o, r.run)
	cmd.Env = append(append(withoutOptions(os.Environ()), cmd.Env...), "REDLOCKD_ADDR="+address, fmt.Sprint("REDLOCKD_KEY=rolling:", number), "REDLOCKD_ROLLING=1")
	cmd.SysProcAttr = ownGroup()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errors2, err3 := os.Create(filepath.Join(os.TempDir(), fmt.Sprint("rolling-stderr-", number)))
	if err := errors.Join(err1, err2, err3); err != nil {
		r.problem = err.Error()
		return
	}
	defer os.Remove(errors2.Name())
	defer errors2.Close()
	cmd.Stderr = errors2
	if err := cmd.Start(); err != nil {
		r.problem = err.Error()
		return
	}
	go func() {
		<-stop
		io.WriteString(in, "stop\n")
		in.Close()
	}()
	r.problem = "it has not ended as it should"
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "library":
			r.version = rest
		case "ready":
			said()
		case "failure":
			r.why = append(r.why, rest)
		case "fail":
			r.problem = rest
		case "rolled":
			if _, err := fmt.Sscan(rest, &r.pairs, &r.waits, &r.refused, &r.failed); err == nil {
				r.problem = ""
			}
		}
	}
	if err := cmd.Wait(); err != nil && r.problem != "" {
		text, _ := os.ReadFile(errors2.Name())
		r.problem += fmt.Sprintf(" (%v) %.300s", err, text)
	}
}

func rollingTable(results []*rolled) string {
	var b strings.Builder
	b.WriteString("`make interop ARGS=\"-measure rolling\"` writes this table. Two daemons with the default `--drain-grace 5s` stand behind a TCP balancer that asks `/readyz` twice a second. They restart one after the other while\n" +
		"all libraries lock and release with four tasks each, with their default settings; a third of one task's requests waits. What is refused with `SHUTDOWN` is sent again every 50 ms. Failed is every other error, and a reply nil.\n\n")
	b.WriteString("| library | version | as | pairs | waits | of these refused, granted when repeated | failed | |\n|---|---|---|---:|---:|---:|---:|---|\n")
	for _, r := range results {
		remark := needs[r.run.library]
		if r.run.as == "test-on-borrow" {
			remark = ""
		}
		if r.failed > 0 && remark == "" {
			remark = "`" + strings.ReplaceAll(strings.Join(r.why, "`; `"), "|", "\\|") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d | %s |\n", r.run.library, r.version, r.run.as, r.pairs, r.waits, r.refused, r.failed, remark)
	}
	return b.String()
}
