package chaos

// clients_test.go: what the clients of waits, holds and modes have in common: a
// connection they may wait on, and a history for keys that no other clients use.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

// clientGroup is the clients of one workload, with the records of their replies.
type clientGroup struct {
	run    *run
	record *checker.Recorder
	keys   []string
	tokens atomic.Int64

	crowded bool // most clients go to one daemon

	mu        sync.Mutex
	elections []election
	broken    checker.History // releases, by connections that ended
}

func newClientGroup(r *run, name string, keys int) *clientGroup {
	d := &clientGroup{run: r, record: checker.NewRecorder(r.record.Now)}
	for i := range keys {
		d.keys = append(d.keys, name+":"+strconv.Itoa(i))
	}
	return d
}

// client is a caller with a talk, and its own page of the history.
type client struct {
	*caller
	group *clientGroup
	page  *checker.ClientRecorder
	talk  *talk
	held  *lease // what lasts as long as the connection
}

func (d *clientGroup) client(c *caller) *client {
	return &client{caller: c, group: d, page: d.record.Client()}
}

func (c *client) often(n int) bool { return c.random.IntN(n) == 0 }

func (c *client) draw(least, most time.Duration) time.Duration {
	return (least + time.Duration(c.random.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

// live runs rounds until the time is over.
func (d *clientGroup) live(ctx context.Context, c *caller, round func(context.Context, *client), rest time.Duration) {
	one := d.client(c)
	defer one.hangUp()
	for ctx.Err() == nil {
		if one.reach() {
			round(ctx, one)
		}
		one.rest(ctx, rest)
	}
}

// reach finds a daemon that talks.
func (c *client) reach() bool {
	if c.talk != nil {
		return true
	}
	c.daemon = c.random.IntN(len(c.stand.daemons))
	if c.group.crowded && !c.often(3) {
		c.daemon = 0 // where a wait queue gets long
	}
	c.dialled = c.group.record.Now()
	var err error
	if c.talk, err = dialTalk(c.stand.daemons[c.daemon].Addr(), c.group.record.Now); err != nil {
		c.answers.fail(c.command(c.dialled, "dial"), err)
	}
	return err == nil
}

// broke: a daemon may release what a connection holds from the moment it
// ends, and the client notices the end later.
func (c *client) broke() {
	if c.talk != nil && c.held != nil {
		c.group.leaves(c.held, c.number, c.talk.open)
	}
	c.hangUp()
}

func (d *clientGroup) leaves(l *lease, client int, at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range l.keys {
		d.broken = append(d.broken, checker.CallRecord{
			Client: client, Op: checker.Release, Key: key, Token: l.token, Invoke: at, Complete: max(at, d.record.Now()), Outcome: checker.Unknown,
		})
	}
}

func (d *clientGroup) history() checker.History {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(d.record.History(), d.broken...)
}

func (c *client) hangUp() {
	c.held = nil
	if c.talk != nil {
		c.talk.conn.Close()
		c.talk = nil
	}
}

// do sends one command and waits for its answer, as caller.ask does.
func (c *client) do(timeout time.Duration, words ...any) (any, error) {
	if !c.reach() {
		return nil, errors.New("no daemon there")
	}
	err := c.talk.send(words...)
	if err != nil {
		return nil, c.noted(words, err)
	}
	return c.await(timeout, words)
}

func (c *client) await(timeout time.Duration, words []any) (any, error) {
	reply, err := c.talk.answer(timeout)
	return reply, c.noted(words, err)
}

func (c *client) noted(words []any, err error) error {
	command := c.command(c.talk.sent, words...)
	if refused := faulty.ReplyError(""); err != nil && !errors.As(err, &refused) {
		c.broke()
	}
	c.answers.note(command, err)
	c.unsure = err != nil
	return err
}

// probe: every key can be had again.
func (d *clientGroup) probe(c *caller) error {
	for _, key := range d.keys {
		if _, err := c.lockAndUnlock(key); err != nil {
			return err
		}
	}
	return nil
}

// errNothingGiven: a run without a single grant proves nothing.
var errNothingGiven = errors.New("no client was given anything")

// check returns how much was recorded, and what a check of leases reports.
func (d *clientGroup) check(check func(checker.History) error) (string, error) {
	h := d.history()
	count := map[checker.OpKind]int{}
	for i := range h {
		if h[i].Outcome == checker.OK {
			count[h[i].Op]++
		}
	}
	tally := fmt.Sprintf("%d calls: %d grants, %d extensions, %d releases answered", len(h), count[checker.Acquire], count[checker.Extend], count[checker.Release])
	tally, err := checked(tally, check(h))
	if count[checker.Acquire] == 0 {
		err = errors.Join(err, errNothingGiven)
	}
	return tally, err
}

func (d *clientGroup) dump(w io.Writer) error {
	h := d.history()
	d.mu.Lock()
	defer d.mu.Unlock()
	encoder := json.NewEncoder(w)
	for i := range d.elections {
		if err := encoder.Encode(&d.elections[i]); err != nil {
			return err
		}
	}
	return h.Dump(w)
}
