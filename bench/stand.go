// What does a scenario stand on? A group of masters and one daemon before them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// standOptions are what stands differ in.
type standOptions struct {
	masters int  // 0 = as many as the stand beside it
	durable bool // every master writes to disk before it answers
}

// stand is what scenarios share.
type stand struct {
	dir     string
	binary  string // of the daemon
	masters []*master
	daemon  *daemon
	remarks io.Writer // what went wrong and did not end the run
	onDisk  *stand    // with durable masters, as many; nil until somebody asks for it
}

// note tells whoever watches about turns that failed; nil is no news.
func (st *stand) note(failed error) {
	if failed != nil {
		fmt.Fprintln(st.remarks, "  ", failed)
	}
}

// openStand starts masters, a daemon, and waits until it grants locks.
func openStand(ctx context.Context, dir, binary string, o standOptions, remarks io.Writer) (*stand, error) {
	dir, err := os.MkdirTemp(dir, "stand")
	if err != nil {
		return nil, err
	}
	st := &stand{dir: dir, binary: binary, remarks: remarks}
	if err := st.start(ctx, o); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// another stand beside this one, for whoever needs masters of their own.
func (st *stand) another(ctx context.Context, o standOptions) (*stand, error) {
	if o.masters == 0 {
		o.masters = len(st.masters)
	}
	return openStand(ctx, st.dir, st.binary, o, st.remarks)
}

// durable is the stand whose masters write to disk. It stays for the whole run:
// idle, it costs nothing.
func (st *stand) durable(ctx context.Context) (*stand, error) {
	if st.onDisk == nil {
		var err error
		if st.onDisk, err = st.another(ctx, standOptions{durable: true}); err != nil {
			return nil, err
		}
	}
	return st.onDisk, nil
}

func (st *stand) start(ctx context.Context, o standOptions) error {
	for range o.masters {
		m, err := startMaster(ctx, st.dir, o.durable)
		if err != nil {
			return err
		}
		st.masters = append(st.masters, m)
	}
	var err error
	if st.daemon, err = st.startDaemon("redlockd"); err != nil {
		return err
	}
	return st.daemon.ready(ctx)
}

// startDaemon runs one more daemon before the masters; name is for its output,
// which is a file of its own: it is read for where the daemon listens.
func (st *stand) startDaemon(name string, options ...string) (*daemon, error) {
	log, err := os.CreateTemp(st.dir, name)
	if err != nil {
		return nil, err
	}
	log.Close()
	return startDaemon(st.binary, log.Name(), append([]string{
		"--masters", strings.Join(st.addresses(), ","), "--bootstrap", "--ids-durability", "off", "--log-level", "warn"}, options...)...)
}

// close ends the processes it started, the daemon first.
func (st *stand) close() {
	if st.onDisk != nil {
		st.onDisk.close()
	}
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

// onAnother has every run use a stand of its own.
func onAnother(o standOptions, run runner) runner {
	return func(ctx context.Context, shared *stand, span time.Duration) (figures, error) {
		st, err := shared.another(ctx, o)
		if err != nil {
			return nil, err
		}
		defer st.close()
		return run(ctx, st, span)
	}
}
