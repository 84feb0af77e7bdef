// A daemon that is made of a list of answers.

package cli

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"redlockd/proxy/resp"
)

// script is a daemon: for each command's word its answers in order, the last one
// for ever. An empty answer cuts the connection.
type script struct {
	net.Listener
	mu       sync.Mutex
	answers  map[string][]string
	received []string
	turn     func() // in front of every answer; may change the answers
}

func startScript(t *testing.T, answers map[string][]string, wrap ...func(net.Listener) net.Listener) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range wrap {
		ln = f(ln)
	}
	s := &script{Listener: ln, answers: answers}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var talks sync.WaitGroup
		defer talks.Wait()
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			talks.Go(func() { s.talk(conn) })
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return s
}

func (s *script) talk(conn net.Conn) {
	defer conn.Close()
	for in := resp.NewReader(conn); ; {
		request, err := in.ReadValue()
		if err != nil {
			return
		}
		answer := s.answer(request.Words())
		if answer == "" {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (s *script) answer(words []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, strings.Join(words, " "))
	if s.turn != nil {
		s.turn()
	}
	list, known := s.answers[words[0]]
	switch {
	case !known && words[0] == "DUNLOCK":
		return ":1\r\n"
	case !known:
		return "+OK\r\n"
	case len(list) > 1:
		s.answers[words[0]] = list[1:]
	}
	return list[0]
}

// count is how many commands began with that word.
func (s *script) count(word string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.received {
		if strings.HasPrefix(line, word+" ") {
			n++
		}
	}
	return n
}
