package chaos

// owners_test.go: clients that are due what they ask for, though others want it:
// the holder his own lock once more, the last reader to write. And who has lost one
// of his keys is not due the rest of their time.

import (
	"context"
	"errors"
	"time"

	"redlockd/redlock/judge"
)

type owners struct {
	*clientGroup
	complaints
}

func newOwners(r *run) workload { return &owners{clientGroup: newClientGroup(r, "own", 3)} }

func ownersTrade() trade { return trade{"owners", 12, newOwners} }

func (o *owners) work(ctx context.Context, c *caller) { o.live(ctx, c, o.round, 20*time.Millisecond) }

func (o *owners) round(ctx context.Context, c *client) {
	switch c.random.IntN(6) {
	case 0, 1:
		o.lastReader(ctx, c)
		return
	case 2:
		o.robbed(c)
		return
	}
	w := wants{keys: []string{o.keys[c.random.IntN(len(o.keys))]}, ttl: maxTTL, wait: 2 * time.Second, words: []any{"FAIR"}, token: o.token(c)}
	l := c.take(w)
	if l == nil {
		return
	}
	c.rest(ctx, 100*time.Millisecond)
	w.wait = 200 * time.Millisecond
	o.due(c, l, w, "the holder was refused what it holds")
	c.finish(l)
}

// lastReader becomes the writer when the other reader's time is over.
func (o *owners) lastReader(ctx context.Context, c *client) {
	key := []string{o.token(c)}
	brief := c.take(wants{keys: key, ttl: 100 * time.Millisecond, reads: true})
	l := c.take(wants{keys: key, ttl: maxTTL, reads: true})
	if brief == nil || l == nil {
		return
	}
	pause(context.WithoutCancel(ctx), brief.until-o.record.Now()+200*time.Millisecond)
	o.due(c, l, wants{keys: key, ttl: maxTTL, token: l.token}, "the last reader was refused to write")
	c.finish(l)
}

// robbed of one of several keys, which another token gets, the lease is not to be
// extended.
func (o *owners) robbed(c *client) {
	token := o.token(c)
	l := c.take(wants{keys: []string{token + ":x", token + ":y"}, ttl: maxTTL})
	if l == nil {
		return
	}
	one := wants{keys: l.keys[1:], ttl: maxTTL}
	calls := c.begin(judge.Release, &one, l.token)
	_, _ = c.stand.daemons[c.daemon].ask("DFORCE", one.keys[0])
	for _, call := range calls {
		call.Unknown()
	}
	next := c.take(one)
	if held, _ := c.extend(l); held && next != nil {
		o.breaks("a lease was extended of which %s has a key: %q by %s", next.token, l.keys, l.token)
	}
	c.finish(l)
	if next != nil {
		c.finish(next)
	}
}

// due: the lease runs, so this is given.
func (o *owners) due(c *client, l *lease, w wants, otherwise string) {
	at := o.record.Now()
	given := c.take(w)
	now := o.record.Now()
	if given != nil || c.unsure || now > l.until-100*time.Millisecond || o.run.nemesis.stood(c.daemon, at, now) > 50*time.Millisecond {
		return
	}
	o.breaks("%s: %q by %s at %v", otherwise, w.keys[0], w.token, at)
}

func (o *owners) verdict() (string, error) {
	tally, err := o.check(judge.CheckReaders)
	return tally, errors.Join(o.complaints.all(), err)
}
