//go:build linux

// The effect on one client of other connections that flood the daemon. The latencies of
// the client are logged; the test asserts that none of its locks fails.

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	floodClients  = 8
	floodPipeline = 1000 // commands in one write
)

func TestCrowd_FloodsLeaveTheNeighboursLocksAlone(t *testing.T) {
	needCrowd(t)
	d := launchLocked(t)
	guest := newGuest(t, d)
	span := crowdSpan(8 * time.Second)
	alone := besideFlood(t, d, guest, span, nil)
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprint("flood:", i)
	}
	for name, line := range map[string][]string{
		"PING":              {"PING"},
		"INFO":              {"INFO"},
		"DLOCKS":            {"DLOCKS", "0"},
		"DMLOCK of 64 keys": append([]string{"DMLOCK", "1000", "64"}, keys...),
	} {
		p99 := besideFlood(t, d, guest, span, line)
		t.Logf("beside %d connections that flood with %s: p99 %.2f ms, %.1f times the %.2f ms without", floodClients, name, p99/1000, p99/alone, alone/1000)
	}
}

// besideFlood has the guest work while connections flood the daemon, and returns its p99 in microseconds.
func besideFlood(t *testing.T, d *daemon, g *guest, span time.Duration, line []string) float64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	if line != nil {
		for range floodClients {
			floods.Go(func() { floodWith(ctx, d, line) })
		}
	}
	end := time.Now().Add(span)
	g.work(func() bool { return time.Now().Before(end) })
	stop()
	floods.Wait()
	if g.failures > 0 || g.turns.total == 0 {
		t.Errorf("%q: %d of %d turns of the neighbour failed, the last with: %v", strings.Join(line[:min(1, len(line))], ""), g.failures, g.turns.total, g.last)
	}
	return g.turns.quantile(0.99)
}

// floodWith sends the command in pipelines and reads the answers, until the context ends.
func floodWith(ctx context.Context, d *daemon, line []string) {
	conn, err := dialRESP(ctx, d.address)
	if err != nil {
		return // the daemon is busy with the others
	}
	defer context.AfterFunc(ctx, conn.close)()
	defer conn.close()
	if _, err := conn.do("AUTH", password); err != nil {
		return
	}
	for ctx.Err() == nil {
		for range floodPipeline {
			conn.queue(line...)
		}
		if conn.flush() != nil {
			return
		}
		for range floodPipeline {
			if _, err := conn.read(); err != nil && ctx.Err() != nil {
				return
			}
		}
	}
}
