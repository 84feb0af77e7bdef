package daemon

// The daemon's log, which must not stop the daemon.

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"redlockd/configs"
)

const (
	maxLogLines = 1024        // that wait to be written
	logTimeout  = time.Second // of the last lines, at the end
)

// logWriter writes the log in a goroutine of its own. A reader that stands still (a stopped
// terminal, a full pipe) delays that goroutine alone: others log while they hold mutexes, and
// one that waited there would stop all clients. What the queue cannot take, and what cannot be
// written, is counted; the log has the number once it can be written again.
type logWriter struct {
	out   io.Writer
	lines chan []byte  // nil is the end
	lost  atomic.Int64 // since the start
	ended chan struct{}
}

// newLogWriter starts the goroutine; close ends it.
func newLogWriter(config configs.Config, out io.Writer) *logWriter {
	w := &logWriter{out: out, lines: make(chan []byte, maxLogLines), ended: make(chan struct{})}
	go w.run(config)
	return w
}

// Write queues a line. It never waits.
func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.lost.Add(1)
	}
	return len(line), nil
}

func (w *logWriter) run(config configs.Config) {
	defer close(w.ended)
	var gap bytes.Buffer
	logger, reported := newLogger(config, &gap), int64(0)
	for line := range w.lines {
		if line != nil && !w.write(line) {
			w.lost.Add(1)
			continue
		}
		if lost := w.lost.Load() - reported; lost > 0 && len(w.lines) == 0 { // what was queued before the gap is written
			gap.Reset()
			logger.Error("log messages lost", "messages", lost,
				"hint", "the log could not be written, or not fast enough: look at its disk, or at the program that reads it")
			if w.write(gap.Bytes()) {
				reported += lost
			}
		}
		if line == nil {
			return
		}
	}
}

func (w *logWriter) write(line []byte) (written bool) {
	_, err := w.out.Write(line)
	return err == nil
}

// close writes what is queued, unless the reader stands still.
func (w *logWriter) close() {
	late := time.After(logTimeout)
	select {
	case w.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-w.ended:
	case <-late:
	}
}
