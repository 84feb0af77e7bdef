// What does a scenario stand on? A group of masters and one daemon before them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// stand is what scenarios share.
type stand struct {
	dir     string
	binary  string // of the daemon
	masters []*master
	daemon  *daemon
	remarks io.Writer // what went wrong and did not end the run
}

// note tells whoever watches about turns that failed; nil is no news.
func (st *stand) note(failed error) {
	if failed != nil {
		fmt.Fprintln(st.remarks, "  ", failed)
	}
}

// openStand starts n masters, a daemon, and waits until it grants locks.
func openStand(ctx context.Context, dir, binary string, n int, remarks io.Writer) (*stand, error) {
	dir, err := os.MkdirTemp(dir, "stand")
	if err != nil {
		return nil, err
	}
	st := &stand{dir: dir, binary: binary, remarks: remarks}
	if err := st.start(ctx, n); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (st *stand) start(ctx context.Context, n int) error {
	for range n {
		m, err := startMaster(ctx, st.dir)
		if err != nil {
			return err
		}
		st.masters = append(st.masters, m)
	}
	var err error
	st.daemon, err = startDaemon(st.binary, filepath.Join(st.dir, "redlockd"),
		"--masters", strings.Join(st.addresses(), ","), "--bootstrap", "--log-level", "warn")
	if err != nil {
		return err
	}
	return st.daemon.ready(ctx)
}

// close ends the processes it started, the daemon first.
func (st *stand) close() {
	if st.daemon != nil {
		st.daemon.process.terminate()
	}
	for _, m := range st.masters {
		m.close()
	}
}

// addresses of the masters.
func (st *stand) addresses() []string {
	var all []string
	for _, m := range st.masters {
		all = append(all, m.address)
	}
	return all
}
