package chaos

// asks_test.go: what such a client asks for, what it is given, and how it gives
// that back; all of it is written down.

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"redlockd/redlock/judge"
)

// wants is a request for keys.
type wants struct {
	keys  []string
	ttl   time.Duration
	wait  time.Duration // 0: not at all
	words []any         // further ones
	token string
	reads bool
	limit int
	holds bool // as long as the connection
	looks bool // whether it stands in line, while it waits
	minds bool // the queue, though it may not wait
}

func (w *wants) command() []any {
	words := []any{"DLOCK", w.keys[0], w.ttl.Milliseconds()}
	if len(w.keys) > 1 {
		words = []any{"DMLOCK", w.ttl.Milliseconds(), len(w.keys)}
		for _, key := range w.keys {
			words = append(words, key)
		}
	}
	if w.reads {
		words = append(words, "SHARED")
	}
	if w.limit > 0 {
		words = append(words, "LIMIT", w.limit)
	}
	if w.wait > 0 {
		words = append(words, "WAIT", w.wait.Milliseconds())
	}
	if w.token != "" {
		words = append(words, "TOKEN", w.token)
	}
	return append(words, w.words...)
}

// lease is what a client was given.
type lease struct {
	wants
	token    string
	until    time.Duration
	election int // its number
}

// token that nobody has used.
func (d *clientGroup) token(c *client) string {
	return fmt.Sprintf("token-%d-of-%d", d.tokens.Add(1), c.number)
}

// begin writes down what is asked for.
func (c *client) begin(op judge.Op, w *wants, token string) []judge.Call {
	var calls []judge.Call
	for _, key := range w.keys {
		call := c.page.Begin(op, key, token)
		if w.reads && op == judge.Acquire {
			call = call.AsReader()
		}
		if w.limit > 0 && op == judge.Acquire {
			call = call.OfPermits(w.limit)
		}
		calls = append(calls, call)
	}
	return calls
}

// take asks for keys; nil if they were not given.
func (c *client) take(w wants) *lease {
	now, words := c.group.record.Now, w.command()
	v := election{Client: c.number, Key: w.keys[0], Reads: w.reads, Waits: w.wait > 0 || w.minds}
	calls := c.begin(judge.Acquire, &w, w.token)
	v.Invoke = now()
	v.End = v.Invoke + w.wait
	v.Outcome = judge.Unknown
	if !c.reach() {
		for _, call := range calls {
			call.Refused() // it was never sent
		}
		return nil
	}
	v.Daemon = c.daemon
	err := c.noted(words, c.talk.send(words...))
	var reply any
	if err == nil {
		if w.looks {
			// To stand in a queue takes the masters an answer, and their disk.
			for looks := 0; looks < 4 && v.Stood == 0; looks++ {
				time.Sleep(time.Duration(looks) * 2 * time.Millisecond)
				v.Stood = c.look(w.keys[0])
			}
		}
		reply, err = c.await(w.wait+callTimeout, words)
	}
	v.Complete = now()
	v.Until = v.Complete + cmp.Or(w.ttl, maxTTL) + maxTTL/10
	grant, isGrant := reply.([]any)
	l := &lease{wants: w}
	for _, call := range calls {
		switch {
		case err != nil:
			call.Unknown()
		case !isGrant:
			call.Refused()
			v.Outcome = judge.No
		default:
			l.token, l.until = grant[0].(string), deadline(max(v.Invoke, c.talk.empty), grant[1])
			v.Outcome, v.Fence = judge.OK, grant[2].(int64)
			call.GrantedUntil(l.token, l.until, v.Fence)
		}
	}
	l.election = c.group.note(v)
	if v.Outcome != judge.OK {
		return nil
	}
	if w.holds {
		c.held = l
	}
	return l
}

// began is when the masters were asked for it, or earlier.
func (l *lease) began() time.Duration { return l.until - l.ttl }

// look asks on another connection whether this one stands in line, and is 0 if
// it does not yet, or not any more.
func (c *client) look(key string) time.Duration {
	reply, err := c.stand.daemons[c.daemon].ask("DWAITERS", key)
	rows, ok := reply.([]any)
	if err != nil || !ok {
		return 0
	}
	for _, row := range rows {
		fields, _ := row.([]any)
		for i := 1; i < len(fields); i += 2 {
			if fields[i-1] == "addr" && fields[i] == c.talk.conn.LocalAddr().String() {
				return c.group.record.Now()
			}
		}
	}
	return 0
}

func (d *clientGroup) note(v election) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.elections = append(d.elections, v)
	return len(d.elections) - 1
}

// gone: the keys of a lease are nobody's from this instant.
func (d *clientGroup) gone(l *lease, at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.elections[l.election].Until = at
}

// extend tells whether it was answered, and whether with yes.
func (c *client) extend(l *lease) (held, known bool) {
	calls := c.begin(judge.Extend, &l.wants, l.token)
	began := c.group.record.Now()
	words := []any{"DEXTEND", l.keys[0], l.token, l.ttl.Milliseconds()}
	if len(l.keys) > 1 {
		words = []any{"DMEXTEND", l.token, l.ttl.Milliseconds(), len(l.keys)}
		for _, key := range l.keys {
			words = append(words, key)
		}
	}
	reply, err := c.do(callTimeout, words...)
	for _, call := range calls {
		switch {
		case err != nil:
			call.Unknown()
		case reply == nil && len(calls) > 1:
			call.Unknown() // one of them is not held, which one is not said
		case reply == nil:
			call.Refused()
		default:
			call.GrantedUntil(l.token, deadline(began, reply), 0)
		}
	}
	return err == nil && reply != nil, err == nil
}

// giveBack tells whether it was answered, and whether all was held.
func (c *client) giveBack(l *lease) (held, known bool) {
	calls := c.begin(judge.Release, &l.wants, l.token)
	words := []any{"DUNLOCK", l.keys[0], l.token}
	if len(l.keys) > 1 {
		words = []any{"DMUNLOCK", l.token, len(l.keys)}
		for _, key := range l.keys {
			words = append(words, key)
		}
	}
	reply, err := c.do(callTimeout, words...)
	n, _ := reply.(int64)
	for _, call := range calls {
		if err != nil || n != 0 && n != int64(len(calls)) {
			call.Unknown() // which of them were held is not said
			continue
		}
		call.Released(n > 0)
	}
	if err == nil {
		c.held = nil
		c.group.gone(l, c.group.record.Now())
	}
	return n == int64(len(calls)), err == nil
}

// finish gives back, twice if the first answer is not known. A connection that
// may still hold something must not wait for it.
func (c *client) finish(l *lease) {
	if _, known := c.giveBack(l); known {
		return
	}
	if _, known := c.giveBack(l); !known {
		c.hangUp()
	}
}

// vanish asks and goes away while it waits.
func (c *client) vanish(ctx context.Context, w wants) {
	calls := c.begin(judge.Acquire, &w, w.token)
	v := election{Client: c.number, Daemon: c.daemon, Key: w.keys[0], Waits: true, Invoke: c.group.record.Now(), Outcome: judge.Unknown}
	_ = c.talk.send(w.command()...)
	c.rest(ctx, 200*time.Millisecond)
	c.hangUp()
	for _, call := range calls {
		call.Unknown()
	}
	v.Complete = c.group.record.Now()
	v.Until = v.Complete + w.ttl + maxTTL/10
	c.group.note(v)
}
