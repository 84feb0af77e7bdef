// The daemon of a story: it starts, restarts at the same address, and reports the number
// of its clients.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// masterTimeout is ten times the default: two stories and their runtimes leave
// a small machine's masters without a processor for a while, and the stories
// are about clients.
const masterTimeout = "1s"

// announced is followed by the address of the daemon.
const announced = "--cluster-announce"

// daemon is one redlockd at one address, through restarts.
type daemon struct {
	process *process
	binary  string
	options []string
	log     string // all its lives write to it, one after another
	address string
	masters []*process // that a story may kill; nil: they are others', too
	peer    *daemon    // the other daemon of a cluster, nil without
	ended   bool       // for good
}

// startDaemon starts redlockd before the stand's masters, on any free port.
func startDaemon(s *stand, name string, options ...string) (*daemon, error) {
	var err error
	for range portTries {
		d := &daemon{binary: s.binary, address: net.JoinHostPort("127.0.0.1", anyPort())}
		d.log = filepath.Join(s.dir, "redlockd-"+name+"-"+strings.ReplaceAll(d.address, ":", "-"))
		d.options = append([]string{"--masters", s.list, "--listen", d.address, "--master-timeout", masterTimeout}, options...)
		if i := slices.Index(d.options, announced); i >= 0 {
			d.options = slices.Insert(d.options, i+1, d.address)
		}
		if err = d.start(); err == nil {
			return d, nil
		}
	}
	return nil, err
}

// start returns when a quorum votes: a lock is granted and given back.
func (d *daemon) start() error {
	p, err := startProcess(d.log, d.binary, d.options...)
	if err != nil {
		return err
	}
	d.process = p
	if err := p.until("starting redlockd", d.grants); err != nil {
		p.terminate()
		return err
	}
	return nil
}

func (d *daemon) restart() error {
	d.process.terminate()
	return d.start()
}

// grants also counts a daemon that wants a password as ready: it listens, and
// its masters are those of the others.
func (d *daemon) grants() bool {
	reply, err := d.ask("DLOCK interop:ready:"+d.address+" 1000 TOKEN interop-ready\r\n", "*3\r\n")
	if err != nil {
		return false
	}
	if strings.HasPrefix(reply, "-NOAUTH") {
		return true
	}
	_, err = d.ask("DUNLOCK interop:ready:"+d.address+" interop-ready\r\n", ":")
	return err == nil
}

// ask sends an inline command on a connection of its own and returns the
// reply's first line, with an error unless it begins as wanted or is NOAUTH.
func (d *daemon) ask(command, wanted string) (string, error) {
	c, err := net.DialTimeout("tcp", d.address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(replyPatience))
	if _, err := c.Write([]byte(command)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(line, wanted) && !strings.HasPrefix(line, "-NOAUTH") {
		return line, fmt.Errorf("%s: %s", strings.TrimSpace(command), line)
	}
	return line, nil
}

// hold takes a lock that is released when the connection is closed.
func (d *daemon) hold(key string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", d.address, replyPatience)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(replyPatience))
	fmt.Fprintf(c, "DLOCK %s 30000 HOLD\r\n", key) // an error shows in the read
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "*3\r\n" {
		err = fmt.Errorf("DLOCK %s 30000 HOLD: %s", key, line)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// untilWaited returns when a client waits for a lock, or with an error when ctx ends.
func (d *daemon) untilWaited(ctx context.Context) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		if n, err := d.figure("clients", "blocked_clients"); err == nil && n > 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.New("the program did not wait for the lock")
		}
	}
}

// clients is the number of connections beside the one that asks.
func (d *daemon) clients() (int, error) {
	n, err := d.figure("clients", "connected_clients")
	return n - 1, err
}

// figure is one of a section of INFO.
func (d *daemon) figure(section, name string) (int, error) {
	c, err := net.DialTimeout("tcp", d.address, time.Second)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := fmt.Fprintf(c, "INFO %s\r\n", section); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, name)
}

// complaints are lines of its log that no story may cause.
func (d *daemon) complaints() string {
	var found []string
	for line := range strings.Lines(d.process.text()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "; ")
}
