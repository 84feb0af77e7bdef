// The daemon under test. It is built from the source beside this module and started on a free
// port. Scenarios use it once it has granted a lock.

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"redlockd/proxy/resp"
)

// daemon is one running redlockd.
type daemon struct {
	process *process
	address string // of the plain listener
	secure  string // of the TLS listener; "" = none
}

// buildDaemon compiles redlockd into dir, and returns the path of the binary.
func buildDaemon(ctx context.Context, dir string) (string, error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "redlockd").Output()
	if err != nil {
		return "", fmt.Errorf("looking for redlockd's source: %w; run it inside bench/", err)
	}
	binary := filepath.Join(dir, "redlockd")
	build := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(source)), "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building redlockd: %w\n%s", err, output)
	}
	return binary, nil
}

// startDaemon runs the binary with options on a free port, with its output in the file log.
// It returns once the daemon has printed its address.
func startDaemon(binary, log string, options ...string) (*daemon, error) {
	cmd := exec.Command(binary, append([]string{"--listen", "127.0.0.1:0"}, options...)...)
	p, err := startProcess(cmd, log)
	if err != nil {
		return nil, err
	}
	d := &daemon{process: p}
	if err := p.waitFor("starting redlockd", d.listening); err != nil {
		p.kill()
		return nil, err
	}
	return d, nil
}

// listening reads the first line of the banner, which may follow lines of the log.
func (d *daemon) listening() bool {
	for line := range strings.Lines(d.process.text()) {
		if address, ok := strings.CutPrefix(line, "redlockd listens on "); ok && strings.HasSuffix(line, "\n") {
			var secure string
			d.address, secure, _ = strings.Cut(strings.TrimSpace(address), ", ")
			d.secure = strings.TrimPrefix(secure, "tls:")
			return true
		}
	}
	return false
}

// ready waits until the daemon grants a lock, and releases it: then a quorum votes.
func (d *daemon) ready(ctx context.Context) error { return d.grants(ctx, "bench:ready") }

func (d *daemon) grants(ctx context.Context, key string) error {
	c, err := dialRESP(ctx, d.address)
	if err != nil {
		return err
	}
	defer c.close()
	var last resp.Value
	err = d.process.waitFor("the first lock", func() bool {
		last, err = c.do("DLOCK", key, "1000")
		return err == nil && last.Kind == '*' || ctx.Err() != nil
	})
	if err != nil {
		return fmt.Errorf("the daemon grants no lock (%q): %w", last.Text, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, err = c.do("DUNLOCK", key, last.Items[0].Text)
	return err
}
