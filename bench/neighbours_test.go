//go:build linux

// The effect on one client of other connections that flood the daemon. The latencies of
// the client are logged; the test asserts that none of its locks fails.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

const (
	floodClients  = 8
	floodPipeline = 1000 // commands in one write
	floodRounds   = 3
)

// The flood needs processors itself, and here they are those of the daemon and its masters.
// So each flood is measured twice: at the daemon, and at a redis-server that has nothing to
// do with the locks. What the neighbour notices of the latter no daemon can prevent.
func TestCrowd_FloodsLeaveTheNeighboursLocksAlone(t *testing.T) {
	needCrowd(t)
	d := launchLocked(t)
	other := faulty.Start(t)
	guest := newGuest(t, d)
	slice := crowdSpan(8*time.Second) / 4
	besideFlood(t, guest, slice, "", nil)
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
		var here, there []float64 // times the p99 without
		for range floodRounds {
			before, _ := besideFlood(t, guest, slice, "", nil)
			at, commands := besideFlood(t, guest, slice, d.address, line)
			after, _ := besideFlood(t, guest, slice, "", nil)
			elsewhere, more := besideFlood(t, guest, slice, other.Addr(), line)
			alone := (before + after) / 2
			here, there = append(here, at/alone), append(there, elsewhere/alone)
			t.Logf("beside %d connections that flood with %s: p99 %.2f ms (%d commands in %v); beside the same flood of another server %.2f ms (%d commands); without %.2f ms",
				floodClients, name, at/1000, commands, slice, elsewhere/1000, more, alone/1000)
		}
		slices.Sort(here)
		slices.Sort(there)
		t.Logf("%s: the median p99 is %.1f times that without, and %.1f times beside a flood of another server", name, here[floodRounds/2], there[floodRounds/2])
	}
}

// besideFlood has the guest work while connections flood the server with a command, and
// returns its p99 in microseconds and the number of their commands. Without a command
// there is no flood.
func besideFlood(t *testing.T, g *guest, span time.Duration, address string, line []string) (p99 float64, commands int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	var count atomic.Int64
	if line != nil {
		for range floodClients {
			floods.Go(func() { floodWith(ctx, address, line, &count) })
		}
	}
	end := time.Now().Add(span)
	g.work(func() bool { return time.Now().Before(end) })
	stop()
	floods.Wait()
	if g.failures > 0 || g.turns.total == 0 {
		t.Errorf("%q: %d of %d turns of the neighbour failed, the last with: %v", strings.Join(line[:min(1, len(line))], ""), g.failures, g.turns.total, g.last)
	}
	return g.turns.quantile(0.99), count.Load()
}

// floodWith sends the command in pipelines and reads the answers, until the context ends.
func floodWith(ctx context.Context, address string, line []string, count *atomic.Int64) {
	conn, err := dialRESP(ctx, address)
	if err != nil {
		return // the server is busy with the others
	}
	defer context.AfterFunc(ctx, conn.close)()
	defer conn.close()
	_, _ = conn.do("AUTH", password) // the other server needs none
	for ctx.Err() == nil {
		for range floodPipeline {
			conn.queue(line...)
		}
		if conn.flush() != nil {
			return
		}
		for range floodPipeline {
			if _, err := conn.read(); err != nil {
				return
			}
			count.Add(1)
		}
	}
}

const (
	greedyClients = 200
	greedyCeiling = 110 << 20 // bytes of the whole daemon; 87 MB measured
)

// Clients of one user subscribe without an end, or request long replies and read none. As with
// the floods, what the neighbour notices of the same clients of another server no daemon can
// prevent.
func TestCrowd_ClientsThatReadNothingAreBoundedAndLeaveTheNeighbourAlone(t *testing.T) {
	needCrowd(t)
	d := launchLocked(t)
	other := faulty.Start(t, "--client-output-buffer-limit", "normal", "1048576", "0", "0",
		"--client-output-buffer-limit", "pubsub", "1048576", "0", "0")
	guest := newGuest(t, d)
	slice := crowdSpan(8*time.Second) / 2
	besideFlood(t, guest, slice, "", nil)
	before := occupied(t, d)
	for name, command := range map[string]func(client, n int) []string{
		"SUBSCRIBE": func(client, n int) []string {
			return []string{"SUBSCRIBE", fmt.Sprintf("dlock:%d:%d:%s", client, n, strings.Repeat("x", 200))}
		},
		"COMMAND DOCS": func(int, int) []string { return []string{"COMMAND", "DOCS"} },
	} {
		var here, there []float64 // times the p99 without
		for range floodRounds {
			alone, _ := besideFlood(t, guest, slice, "", nil)
			at, peak := besideUnread(t, d, guest, slice, d.address, command)
			elsewhere, _ := besideUnread(t, d, guest, slice, other.Addr(), command)
			here, there = append(here, at/alone), append(there, elsewhere/alone)
			t.Logf("beside %d connections that send %s and read nothing: %d MB of memory, %d MB without; p99 %.2f ms; beside the same of another server %.2f ms; without %.2f ms",
				greedyClients, name, peak>>20, before>>20, at/1000, elsewhere/1000, alone/1000)
			if peak > greedyCeiling {
				t.Errorf("%s: the daemon takes %d bytes, at most %d are allowed", name, peak, greedyCeiling)
			}
		}
		slices.Sort(here)
		slices.Sort(there)
		t.Logf("%s: the median p99 is %.1f times that without, and %.1f times beside the same of another server", name, here[floodRounds/2], there[floodRounds/2])
	}
}

// besideUnread has the guest work while connections send commands to the server and read
// nothing. It returns the guest's p99 in microseconds and the largest memory of the daemon.
func besideUnread(t *testing.T, d *daemon, g *guest, span time.Duration, address string, command func(client, n int) []string) (p99 float64, peak int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for i := range greedyClients {
		crowd.Go(func() {
			for ctx.Err() == nil {
				sendUnread(ctx, address, func(n int) []string { return command(i, n) })
				time.Sleep(100 * time.Millisecond) // closed by the server: again
			}
		})
	}
	next, end := time.Now(), time.Now().Add(span)
	g.work(func() bool {
		if now := time.Now(); now.After(next) {
			peak, next = max(peak, occupied(t, d)), now.Add(sampleInterval)
		}
		return time.Now().Before(end)
	})
	stop()
	crowd.Wait()
	if g.failures > 0 || g.turns.total == 0 {
		t.Errorf("%s: %d of %d turns of the neighbour failed, the last with: %v", command(0, 0)[0], g.failures, g.turns.total, g.last)
	}
	return g.turns.quantile(0.99), peak
}

// sendUnread sends commands on a connection of its own, a hundred at a time, until the
// server closes it or the context ends. It reads nothing after the login.
func sendUnread(ctx context.Context, address string, command func(n int) []string) {
	conn, err := dialRESP(ctx, address)
	if err != nil {
		return // the server rejects it
	}
	defer context.AfterFunc(ctx, conn.close)()
	defer conn.close()
	_, _ = conn.do("AUTH", password) // the other server needs none
	for n := 0; ; n++ {
		conn.queue(command(n)...)
		if n%100 == 99 && conn.flush() != nil {
			return
		}
	}
}
