// The environment of the stories: three redis-server processes that sync every write, as
// one group, and a daemon for each story. So a restart in one story does not affect
// another.

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Ports below the range the kernel gives to outgoing connections: a daemon has
// to get the same one again after its restart.
const (
	lowestPort  = 12000
	highestPort = 31999
	portTries   = 20
)

// secret is the password of the daemons that have one.
const secret = "interop-secret"

// stand is everything that outlives a story.
type stand struct {
	dir       string
	data      string // of the masters
	binary    string
	masters   []*process
	list      string // for --masters
	passwords bool   // the daemon knows them
	described string // versions, for the table
	size      int    // number of masters
}

// startStand starts the masters in dir, and builds the daemon into it.
func startStand(ctx context.Context, o options, dir string) (*stand, error) {
	s := &stand{dir: dir, binary: o.daemon, data: memory(), size: 3}
	if s.binary == "" {
		s.binary = filepath.Join(dir, "redlockd")
		build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(o.programs, "..", ".."), "-o", s.binary, ".")
		if output, err := build.CombinedOutput(); err != nil {
			s.close()
			return nil, fmt.Errorf("building redlockd: %w\n%s", err, output)
		}
	}
	if err := s.start(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// memory makes a directory in memory, where there is such a place: the masters
// sync every write, and a busy disk is not what is looked at here. Without one
// it is empty, and the masters write beside everything else.
func memory() string {
	dir, err := os.MkdirTemp("/dev/shm", "redlockd-interop-")
	if err != nil {
		return ""
	}
	return dir
}

func (s *stand) start(ctx context.Context) error {
	var addresses []string
	data := cmp.Or(s.data, s.dir)
	for i := range s.size {
		p, address, err := startMaster(data, i)
		if err != nil {
			return err
		}
		s.masters = append(s.masters, p)
		addresses = append(addresses, address)
	}
	s.list = strings.Join(addresses, ",")
	if err := s.bootstrap(ctx); err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return err
	}
	s.described = "three masters, " + strings.Join(strings.Fields(string(version))[:3], " ")
	ask := exec.CommandContext(ctx, s.binary, "--help")
	ask.Env = withoutOptions(os.Environ())
	help, err := ask.Output()
	if err != nil {
		return fmt.Errorf("redlockd --help: %w", err)
	}
	s.passwords = strings.Contains(string(help), "--requirepass")
	return nil
}

// bootstrap declares that the masters are new, for daemons with these options.
func (s *stand) bootstrap(ctx context.Context, options ...string) error {
	bootstrap := exec.CommandContext(ctx, s.binary, append([]string{"bootstrap", "--masters", s.list}, options...)...)
	bootstrap.Env = withoutOptions(os.Environ())
	if output, err := bootstrap.CombinedOutput(); err != nil {
		return fmt.Errorf("redlockd bootstrap: %w\n%s", err, output)
	}
	return nil
}

func (s *stand) close() {
	for _, m := range s.masters {
		m.terminate()
	}
	if s.data != "" {
		os.RemoveAll(s.data)
	}
}

// startMaster tries ports until one is free.
func startMaster(dir string, number int) (*process, string, error) {
	data := filepath.Join(dir, "master"+strconv.Itoa(number))
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, "", err
	}
	var err error
	for range portTries {
		port := anyPort()
		var p *process
		p, err = startProcess(filepath.Join(data, "log-"+port), "redis-server", "--bind", "127.0.0.1", "--port", port,
			"--dir", data, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
		if err != nil {
			return nil, "", fmt.Errorf("the masters are redis-server processes: %w", err)
		}
		if err = p.until("starting redis-server", func() bool { return strings.Contains(p.text(), "eady to accept connections") }); err == nil {
			return p, net.JoinHostPort("127.0.0.1", port), nil
		}
		p.terminate()
	}
	return nil, "", err
}

// usedPorts are never given twice: a daemon that is about to end, because another one of
// this driver has its port, would seem to be ready while that one answers for it.
var usedPorts sync.Map

func anyPort() string {
	for {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if _, used := usedPorts.LoadOrStore(port, true); !used {
			return strconv.Itoa(port)
		}
	}
}
