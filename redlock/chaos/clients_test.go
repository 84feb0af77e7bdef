package chaos

// clients_test.go: what the clients of waits, holds and modes have in common: a
// connection they may wait on, and a history for keys that nobody else wants.

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
	"redlockd/redlock/judge"
)

// desk is where the clients of one workload write down what they were told.
type clientGroup struct {
	run    *run
	record *judge.Recorder
	keys   []string
	tokens atomic.Int64

	crowded bool // most clients go to one daemon

	mu        sync.Mutex
	elections []election
	broken    judge.History // releases, by connections that ended
}

func newClientGroup(r *run, name string, keys int) *clientGroup {
	d := &clientGroup{run: r, record: judge.NewRecorder(r.record.Now)}
	for i := range keys {
		d.keys = append(d.keys, name+":"+strconv.Itoa(i))
	}
	return d
}

// client is a caller with a talk, and its own page of the history.
type client struct {
	*caller
	group  *clientGroup
	page   *judge.Client
	talk   *talk
	daemon int
	held   *lease // what lives as long as the connection
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
		c.daemon = 0 // where a line gets long
	}
	var err error
	c.talk, err = dialTalk(c.stand.daemons[c.daemon].Addr(), c.group.record.Now)
	return err == nil
}

// broke: a daemon may release what lives with a connection from the moment it
// ends, and the client learns of that later.
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
		d.broken = append(d.broken, judge.Event{
			Client: client, Op: judge.Release, Key: key, Token: l.token, Invoke: at, Complete: max(at, d.record.Now()), Outcome: judge.Unknown,
		})
	}
}

func (d *clientGroup) history() judge.History {
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

// say sends one command and waits for its answer, as caller.ask does.
func (c *client) do(patience time.Duration, words ...any) (any, error) {
	if !c.reach() {
		return nil, errors.New("no daemon there")
	}
	err := c.talk.send(words...)
	if err != nil {
		return nil, c.noted(words, err)
	}
	return c.await(patience, words)
}

func (c *client) await(patience time.Duration, words []any) (any, error) {
	reply, err := c.talk.answer(patience)
	return reply, c.noted(words, err)
}

func (c *client) noted(words []any, err error) error {
	if refused := faulty.ReplyError(""); err != nil && !errors.As(err, &refused) {
		c.broke()
	}
	c.answers.note(words, err)
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

// errNothingGiven: a run in which nobody was given anything says nothing.
var errNothingGiven = errors.New("nobody was given anything")

// judge says how much there was, and what a judge of leases thinks of it.
func (d *clientGroup) check(check func(judge.History) error) (string, error) {
	h := d.history()
	count := map[judge.Op]int{}
	for i := range h {
		if h[i].Outcome == judge.OK {
			count[h[i].Op]++
		}
	}
	tally := fmt.Sprintf("%d calls: %d grants, %d extensions, %d releases answered", len(h), count[judge.Acquire], count[judge.Extend], count[judge.Release])
	tally, err := checked(tally, check(h))
	if count[judge.Acquire] == 0 {
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
