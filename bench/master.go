// A master: a redis-server process on a free loopback port. It has no persistence, or one
// fsync for every answer.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// The ports are below the range that the kernel uses for outgoing connections: a client
// could take a port of that range at any time.
const (
	minPort   = 12000
	maxPort   = 31999
	portTries = 20
)

// master is one running redis-server.
type master struct {
	process *process
	address string
	version string
	control *respConn // for INFO and TIME; used by one goroutine at a time
}

// startMaster starts a redis-server in dir, and returns once it answers.
func startMaster(ctx context.Context, dir string, durable bool) (*master, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("the masters are redis-server processes: %w; install it "+
			"(apt-get install redis-server, dnf install redis, brew install redis)", err)
	}
	var err error
	for range portTries {
		var m *master
		if m, err = tryMaster(ctx, dir, minPort+rand.IntN(maxPort-minPort+1), durable); err == nil {
			return m, nil
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "already in use") {
			break
		}
	}
	return nil, err
}

func tryMaster(ctx context.Context, dir string, number int, durable bool) (*master, error) {
	port := strconv.Itoa(number)
	appends := "no"
	if durable {
		appends = "yes"
	}
	own, err := os.MkdirTemp(dir, "redis")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", own,
		"--save", "", "--appendonly", appends, "--appendfsync", "always", "--daemonize", "no")
	p, err := startProcess(cmd, filepath.Join(own, "log"))
	if err != nil {
		return nil, err
	}
	m := &master{process: p, address: net.JoinHostPort("127.0.0.1", port)}
	err = p.waitFor("starting redis-server", func() bool { return m.connect(ctx) })
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// connect reports whether this process answers, and not another server that took the port
// first.
func (m *master) connect(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true // the caller checks the context
	}
	c, err := dialRESP(ctx, m.address)
	if err != nil {
		return false
	}
	info, err := c.do("INFO", "server")
	if err != nil || infoField(info.Text, "process_id") != strconv.Itoa(m.process.pid()) {
		c.close()
		return false
	}
	m.control, m.version = c, infoField(info.Text, "redis_version")
	return true
}

func (m *master) close() {
	if m.control != nil {
		m.control.close()
	}
	m.process.kill()
}

// count adds the reads and commands of the master so far. A script counts as one command;
// the commands that it executes do not count.
func (m *master) count(r reading) error {
	stats, errStats := m.control.do("INFO", "stats")
	commands, errCommands := m.control.do("INFO", "commandstats")
	if err := errors.Join(errStats, errCommands); err != nil {
		return fmt.Errorf("master %s: %w", m.address, err)
	}
	reads, err := strconv.ParseFloat(infoField(stats.Text, "total_reads_processed"), 64)
	if err != nil {
		return nil // this server does not count reads
	}
	r[readCount] += reads
	for _, name := range []string{"set", "eval", "evalsha"} {
		calls, _, _ := strings.Cut(strings.TrimPrefix(infoField(commands.Text, "cmdstat_"+name), "calls="), ",")
		if n, err := strconv.ParseFloat(calls, 64); err == nil {
			r[lockCount] += n
		}
	}
	return nil
}

// infoField reads one field of the text of INFO, "" if it is absent.
func infoField(info, name string) string {
	for line := range strings.SplitSeq(info, "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
