package daemon

// group_test.go holds what tests of the daemon on real masters share: a daemon in
// this process, and its report of its masters.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// masterName of the i-th master, as every daemon of a test calls it.
func masterName(i int) string { return string(rune('a' + i)) }

// bootstrapGroup marks real masters as a new group.
func bootstrapGroup(t *testing.T, servers []*faulty.Server) {
	t.Helper()
	var masters []string
	for i, s := range servers {
		masters = append(masters, masterName(i)+"="+s.Addr())
	}
	if err := run(t.Context(), []string{"bootstrap", "--masters", strings.Join(masters, ",")}, []string{unhurried}, nil, io.Discard, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// serveHere runs a daemon in this process until the test ends and returns its
// address. places are its masters, without names.
func serveHere(t *testing.T, places []string, args ...string) string {
	t.Helper()
	masters := make([]string, len(places))
	for i, place := range places {
		masters[i] = masterName(i) + "=" + place
	}
	if len(masters) > 0 {
		args = append(args, "--masters", strings.Join(masters, ","))
	}
	args = append(args, "--listen", "127.0.0.1:0", "--log-level=error")
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan error, 1) // run reports once
	go func() {
		err := run(ctx, args, []string{unhurried}, nil, writer, io.Discard)
		writer.CloseWithError(errors.Join(errors.New("the daemon has ended"), err))
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	address := readAddress(t, reader)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with run, which blocks on a full pipe
	return address
}

// info is a section of INFO by field.
func (c *client) info(t *testing.T, section string) map[string]string {
	t.Helper()
	head := c.ask(t, "INFO %s", section)
	size, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil {
		t.Fatalf("INFO %s: %s", section, head)
	}
	text := make([]byte, size+2)
	if _, err := io.ReadFull(c.replies, text); err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]string)
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// master is the daemon's report of one: its state, and the reason.
func (c *client) master(t *testing.T, i int) (state, detail string) {
	t.Helper()
	line := c.info(t, "masters")[fmt.Sprint("master", i)]
	_, state, _ = strings.Cut(line, ",state=")
	state, _, _ = strings.Cut(state, ",")
	_, detail, _ = strings.Cut(line, ",detail=")
	return state, detail
}

// awaitMaster waits for a state whose reason has all these words.
func (c *client) awaitMaster(t *testing.T, i int, want string, words ...string) {
	t.Helper()
	var state, detail string
	eventually(t, fmt.Sprintf("master %s is %s because of %q", masterName(i), want, words), func() bool {
		state, detail = c.master(t, i)
		return state == want && containsAll(detail, words)
	}, func() string { return state + " (" + detail + ")" })
}

// awaitVoters waits until all masters vote.
func (c *client) awaitVoters(t *testing.T, servers []*faulty.Server) {
	t.Helper()
	for i := range servers {
		c.awaitMaster(t, i, "voting")
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// eventually polls until something is true; last describes the state seen instead.
func eventually(t *testing.T, what string, true func() bool, last func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(testTimeout); !true(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("it did not come about that %s; seen last: %s", what, last())
		}
	}
}

// held are the tokens that the masters keep for a key, "" for none.
func held(t *testing.T, servers []*faulty.Server, key string) []string {
	t.Helper()
	tokens := make([]string, len(servers))
	for i, s := range servers {
		reply, err := s.Do("GET", key)
		if err != nil {
			t.Fatal(err)
		}
		tokens[i], _ = reply.(string)
	}
	return tokens
}

// A daemon with a former list of masters follows before it prints which of them it uses.
func TestRun_PrintsTheMastersThatItUses(t *testing.T) {
	servers := faulty.StartGroup(t, 5)
	bootstrapGroup(t, servers)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--log-level=error", "--masters", listOf(servers[:3])}
		writer.CloseWithError(run(ctx, args, []string{unhurried}, nil, writer, io.Discard))
	}()
	banner := bufio.NewReader(reader)
	readAddress(t, banner)
	line, err := banner.ReadString('\n')
	cancel()
	_, _ = io.Copy(io.Discard, banner) // until the daemon has ended
	if want := "5 masters, 3 must agree: "; err != nil || !strings.HasPrefix(line, want) || !strings.Contains(line, "e="+servers[4].Addr()) {
		t.Errorf("got %q, %v, want %q and master e", line, err, want)
	}
}
