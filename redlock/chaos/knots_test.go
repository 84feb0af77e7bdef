package chaos

// knots_test.go: connections of one daemon that wait for one another, or seem to.
// Who closes a circle is told at once, and nobody else is.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

type cycles struct {
	run *run

	mu     sync.Mutex
	made   int
	broken []error
}

func cyclesTrade() trade {
	return trade{"knots", 6, func(r *run) workload { return &cycles{run: r} }}
}

// knot is one of them: some connections to one daemon, and keys of their own.
type cycle struct {
	talks  []*talk
	daemon *daemon
	name   string
}

func (k *cycles) work(ctx context.Context, c *caller) {
	for ctx.Err() == nil {
		k.round(c)
		c.rest(ctx, 20*time.Millisecond)
	}
}

func (k *cycles) round(c *caller) {
	k.mu.Lock()
	k.made++
	one := &cycle{name: fmt.Sprint("knot-", k.made)}
	k.mu.Unlock()
	defer one.leave()
	daemon := c.random.IntN(len(k.run.stand.daemons))
	one.daemon = k.run.stand.daemons[daemon]
	for range 4 {
		t, err := dialTalk(one.daemon.Addr(), k.run.record.Now)
		if err != nil {
			return
		}
		one.talks = append(one.talks, t)
	}
	kinds := []func(*cycle) error{(*cycle).joins, (*cycle).standsBehind, (*cycle).isOver, (*cycle).becomesWriter}
	at := k.run.record.Now()
	err := kinds[c.random.IntN(len(kinds))](one)
	if k.run.nemesis.stood(daemon, at, k.run.record.Now()) > 500*time.Millisecond {
		return // leases may have ended meanwhile
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && len(k.broken) < 5 {
		k.broken = append(k.broken, err)
	}
}

func (k *cycle) leave() {
	for _, t := range k.talks {
		t.conn.Close()
	}
}

func (k *cycle) key(name string) string { return k.name + ":" + name }

// holds: the connection has the key for long; false if it was not given.
func (k *cycle) holds(who int, key string, more ...any) bool {
	reply, err := k.talks[who].do(callTimeout, append([]any{"DLOCK", k.key(key), maxTTL.Milliseconds(), "HOLD"}, more...)...)
	return err == nil && reply != nil
}

// waits has it stand in line; false if it was not seen there.
func (k *cycle) waits(who int, words ...any) bool {
	_ = k.talks[who].send(words...)
	address := k.talks[who].conn.LocalAddr().String()
	return eventually(func() bool {
		listed, err := k.daemon.ask("DWAITERS")
		return err != nil || strings.Contains(fmt.Sprint(listed), address)
	})
}

func (k *cycle) lock(key string) []any { return []any{"DLOCK", k.key(key), 300, "WAIT", 2000} }

// closes a circle, and must be told so.
func (k *cycle) closes(who int, words ...any) error {
	_, err := k.talks[who].do(callTimeout, words...)
	if err != nil && strings.HasPrefix(err.Error(), "DEADLOCK") {
		return nil
	}
	return fmt.Errorf("a circle of waits was not told: %v", words)
}

// joins: 1 closes a circle behind 2, who waits already.
func (k *cycle) joins() error {
	if !k.holds(0, "x") || !k.holds(1, "y") {
		return nil
	}
	if !k.waits(2, k.lock("x")...) || !k.waits(0, k.lock("y")...) {
		return nil
	}
	return k.closes(1, k.lock("x")...)
}

// standsBehind: 1, a reader, stands behind 2, who wants to write what 0 reads.
func (k *cycle) standsBehind() error {
	if !k.holds(0, "r", "SHARED") || !k.holds(1, "y") {
		return nil
	}
	if !k.waits(2, k.lock("r")...) || !k.waits(1, append(k.lock("r"), "SHARED")...) {
		return nil
	}
	return k.closes(0, k.lock("y")...)
}

// isOver: what 0 had has run out, so nobody waits for it.
func (k *cycle) isOver() error {
	reply, err := k.talks[0].do(callTimeout, "DLOCK", k.key("x"), 50)
	if err != nil || reply == nil || !k.holds(1, "y") {
		return nil
	}
	time.Sleep(60 * time.Millisecond) // its copies last a little longer
	if !k.waits(0, k.lock("y")...) {
		return nil
	}
	return k.free(k.talks[1].do(callTimeout, k.lock("x")...))
}

// becomesWriter: 0 waits for the other reader, not for itself.
func (k *cycle) becomesWriter() error {
	reply, err := k.talks[0].do(callTimeout, "DLOCK", k.key("r"), maxTTL.Milliseconds(), "SHARED")
	grant, ok := reply.([]any)
	if err != nil || !ok {
		return nil
	}
	reply, err = k.talks[1].do(callTimeout, "DLOCK", k.key("r"), 200, "SHARED")
	if err != nil || reply == nil {
		return nil
	}
	return k.free(k.talks[0].do(callTimeout, "DLOCK", k.key("r"), maxTTL.Milliseconds(), "TOKEN", grant[0], "WAIT", 2000))
}

// free: there was no circle.
func (k *cycle) free(_ any, err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "DEADLOCK") {
		return fmt.Errorf("there was no circle of waits: %w", err)
	}
	return nil
}

func (k *cycles) probe(*caller) error { return nil }

func (k *cycles) verdict() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%d knots", k.made), errors.Join(k.broken...)
}

func (k *cycles) dump(io.Writer) error { return nil }
