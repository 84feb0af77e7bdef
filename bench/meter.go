// The cost of a run: processor time, system calls, allocations and batching. Counters are
// read before and after, and divided by the pairs in between. What this system does not
// report (there is no /proc) is left out, never guessed.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on every architecture of Go.
const tick = 10_000 // µs

// reading has all counters of one moment, by the figure that they become.
type reading map[figure]float64

// meter has the reading before a run, and after the run the one after it.
type meter struct {
	testbed       *testbed
	workerSet     workerSet
	before, after reading
	err           error
}

// Counters that are no figures: the figures are their quotients.
const (
	flushCount   figure = "flushes"
	flushedCount figure = "commands in flushes"
	readCount    figure = "reads of masters"
	lockCount    figure = "lock commands of masters"
)

// openMeter takes the first reading.
func openMeter(tb *testbed, c workerSet) *meter {
	m := &meter{testbed: tb, workerSet: c}
	m.before, m.err = m.read()
	return m
}

// finish takes the last reading.
func (m *meter) finish() error {
	var err error
	m.after, err = m.read()
	return errors.Join(m.err, err)
}

// perPair divides the counters by the number of pairs.
func (m *meter) perPair(pairs int64) figures {
	f := figures{}
	for name, after := range m.after {
		if before, ok := m.before[name]; ok {
			f[name] = after - before
		}
	}
	quotient := func(name, above, below figure) {
		if f[below] > 0 {
			f[name] = f[above] / f[below]
		}
	}
	quotient(perFlush, flushedCount, flushCount)
	quotient(perRead, lockCount, readCount)
	for _, name := range []figure{flushCount, flushedCount, readCount, lockCount} {
		delete(f, name)
	}
	for _, name := range []figure{mallocs, clientCalls, daemonCalls, clientCPU, daemonCPU, mastersCPU} {
		if v, ok := f[name]; ok {
			f[name] = v / float64(pairs)
		}
	}
	for _, name := range []figure{clientCPU, daemonCPU, mastersCPU} {
		if v, ok := f[name]; ok {
			f[allCPU] += v
		}
	}
	if daemon, ok := f[daemonCPU]; ok && f[allCPU] > 0 {
		f[serviceCPU] = daemon + f[mastersCPU]
		f[boundShare] = 1 - daemon/f[allCPU]
	}
	return f
}

func (m *meter) read() (reading, error) {
	r := reading{}
	if m.workerSet.flushes != nil {
		flushes, commands := m.workerSet.flushes()
		r[flushCount], r[flushedCount] = float64(flushes), float64(commands)
	}
	for _, pid := range m.workerSet.backends {
		r.cpu(mastersCPU, pid)
	}
	if m.workerSet.backends == nil {
		if err := m.masters(r); err != nil {
			return nil, err
		}
	}
	for _, d := range m.workerSet.daemons {
		r.cpu(daemonCPU, d.process.pid())
		r.calls(daemonCalls, d.process.pid())
	}
	client := m.workerSet.client
	if client == 0 {
		client = os.Getpid()
	}
	r.cpu(clientCPU, client)
	r.calls(clientCalls, client)
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	r[mallocs] = float64(sample[0].Value.Uint64())
	return r, nil
}

// masters adds the counters of the testbed's masters.
func (m *meter) masters(r reading) error {
	for _, master := range m.testbed.masters {
		if err := master.count(r); err != nil {
			return err
		}
		r.cpu(mastersCPU, master.process.pid())
	}
	return nil
}

// cpu adds the user and system time of a process, in µs.
func (r reading) cpu(name figure, pid int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return
	}
	// The fields follow the name in brackets, which may contain anything. Field 0 is the state.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return
	}
	user, errUser := strconv.ParseFloat(string(fields[11]), 64)
	system, errSystem := strconv.ParseFloat(string(fields[12]), 64)
	if errUser == nil && errSystem == nil {
		r[name] += (user + system) * tick
	}
}

// calls adds the read and write system calls of a process.
func (r reading) calls(name figure, pid int) {
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return
	}
	for line := range strings.SplitSeq(string(io), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		if key != "syscr" && key != "syscw" {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			r[name] += n
		}
	}
}
