package proxy

// shutdown.go ends the server after the commands in flight were answered.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// forget is called once per accepted session, when its socket is closed.
func (s *Server) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.sessions[c]; !there {
		return
	}
	delete(s.sessions, c)
	host := c.client.Host
	if s.hosts[host]--; s.hosts[host] == 0 {
		delete(s.hosts, host)
	}
	s.noteEmptyLocked()
}

// noteEmptyLocked is called when a session has ended or the server has stopped: this is true
// once.
func (s *Server) noteEmptyLocked() {
	if s.stopped && len(s.sessions) == 0 {
		close(s.empty)
	}
}

// Shutdown stops accepting at once, lets commands in flight finish and their
// replies be written, and closes. When ctx ends first, the remaining clients are
// closed and the error contains their number. Further calls wait likewise.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.stop() {
		select {
		case <-s.released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.closeListeners()
	for _, c := range s.snapshot() {
		c.drain(true)
	}
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		cut := s.snapshot()
		for _, c := range cut {
			c.guard.Close()
		}
		<-s.empty
		if len(cut) > 0 {
			err = fmt.Errorf("proxy: %d clients were cut off with commands in flight: %w", len(cut), ctx.Err())
		}
	}
	close(s.drained)
	if failed := s.writers.close(); failed != nil {
		err = errors.Join(err, fmt.Errorf("proxy: writers' pool: %w", failed))
	}
	close(s.released)
	return err
}

// stop returns true to the one caller that has to do the work.
func (s *Server) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.stopped = true
	close(s.stopping)
	s.noteEmptyLocked()
	return true
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close() // the error of a listener that is closed already
	}
}

func (s *Server) snapshot() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.sessions))
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// pause waits, but not beyond the beginning of Shutdown.
func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
	}
}
