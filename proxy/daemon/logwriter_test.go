package daemon

// logwriter_test.go: the program that reads the log stands still or ends, or the disk of the log
// is full. The daemon serves all the same.

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlockd/configs"
	"redlockd/pool/faulty"
)

// fullPipe is a pipe that takes no further byte until it is read.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	for filler := make([]byte, 4096); err == nil; {
		if err = w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err == nil {
			_, err = w.Write(filler)
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return r, w
}

func TestProcess_ServesWhileItsLogIsNotReadAndAfterItsReaderHasEnded(t *testing.T) {
	servers := faulty.StartGroup(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	bootstrapGroup(t, servers)
	masters := "a=" + servers[0].Addr() + ",b=" + servers[1].Addr() + ",c=" + servers[2].Addr()
	r, w := fullPipe(t)
	process, address := startProcessWithLog(t, w, "--masters", masters, "--drain-timeout", "2s")
	stuck, _ := startProcessWithLog(t, w, "--masters", masters, "--drain-timeout", "2s")
	c := dial(t, address)
	c.awaitVoters(t, servers)

	absence := func(i int) {
		servers[i].Kill()
		c.awaitMaster(t, i, "down") // the log has a line
		c.lock(t, "beside-"+masterName(i))
		servers[i].Restart()
		c.awaitMaster(t, i, "voting")
	}
	absence(0)
	endOn(t, stuck, syscall.SIGTERM)
	if err := errors.Join(r.Close(), w.Close()); err != nil { // an ended reader
		t.Fatal(err)
	}
	absence(1)
	c.lock(t, "last")
	eventually(t, "the lost lines are counted", func() bool { return c.info(t, "stats")["log_messages_lost"] != "0" }, func() string { return "" })
	endOn(t, process, syscall.SIGTERM)
}

// endOn sends a signal and expects a regular end.
func endOn(t *testing.T, process *exec.Cmd, signal syscall.Signal) {
	t.Helper()
	if err := process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

// gate is a writer that stands still until it is opened, or fails.
type gate struct {
	sync.Mutex
	written strings.Builder
	err     error
}

func (g *gate) Write(p []byte) (int, error) {
	g.Lock()
	defer g.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	return g.written.Write(p)
}

func (g *gate) fail(err error) {
	g.Lock()
	defer g.Unlock()
	g.err = err
}

var lostMessages = regexp.MustCompile(`msg="log messages lost" messages=(\d+) `)

func TestLogWriter_NeverWaitsAndReportsWhatItLost(t *testing.T) {
	var out gate
	out.Lock()
	w := newLogWriter(configs.Config{LogFormat: "text"}, &out)
	const lines = 2 * maxLogLines
	for i := range lines {
		if n, err := io.WriteString(w, strconv.Itoa(i)+"\n"); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	out.Unlock()
	w.close()
	kept, lost, last := 0, 0, -1
	for scan := bufio.NewScanner(strings.NewReader(out.written.String())); scan.Scan(); {
		if found := lostMessages.FindStringSubmatch(scan.Text()); found != nil {
			lost, _ = strconv.Atoi(found[1])
			continue
		}
		n, err := strconv.Atoi(scan.Text())
		if err != nil || n <= last {
			t.Fatalf("%q follows %d", scan.Text(), last)
		}
		kept, last = kept+1, n
	}
	if kept < maxLogLines || lost == 0 || kept+lost != lines || w.lost.Load() != int64(lost) {
		t.Errorf("%d lines are written, %d reported and %d counted as lost, of %d", kept, lost, w.lost.Load(), lines)
	}
}

func TestLogWriter_ReportsWhatCouldNotBeWritten(t *testing.T) {
	var out gate
	out.fail(syscall.ENOSPC)
	w := newLogWriter(configs.Config{LogFormat: "json"}, &out)
	_, _ = io.WriteString(w, "first\n")
	eventually(t, "the first line is lost", func() bool { return w.lost.Load() == 1 }, func() string { return "" })
	out.fail(nil)
	_, _ = io.WriteString(w, "second\n")
	w.close()
	if got := out.written.String(); !strings.HasPrefix(got, "second\n") || strings.Count(got, `"msg":"log messages lost","messages":1,`) != 1 {
		t.Error(got)
	}
}

func TestLogWriter_EndsThoughItsReaderStandsStill(t *testing.T) {
	var out gate
	out.Lock()
	w := newLogWriter(configs.Config{}, &out)
	for range 2 * maxLogLines {
		_, _ = io.WriteString(w, "x\n")
	}
	w.close()
	out.Unlock()
	w.close() // ends the goroutine, too
}
