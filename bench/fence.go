// What does the fence cost? The peer is the same engine, whose flushes end with
// the identity and the clock only: the command that raises a master's register
// is left out on the way, and its score is what it would have been. Both stand on
// masters of their own: nobody else may believe such registers.
package main

import (
	"context"
	"strconv"
	"time"

	"redlockd/pool"
)

const fenceCallers = 64

const (
	unfencedName = "engine in process, own masters, no register, 64 callers"
	fencedName   = "engine in process, own masters, 64 callers"
)

func fenceScenarios() []scenario {
	own := standOptions{}
	return []scenario{
		{name: unfencedName, page: pageModes, run: onAnother(own, pairs(fenceCallers, openThrough(true)))},
		{name: fencedName, page: pageModes, peer: unfencedName, run: onAnother(own, pairs(fenceCallers, openThrough(false)))},
	}
}

// openThrough has the engine use links of ours, with the register left out or
// not: otherwise both sides are the same.
func openThrough(unfenced bool) opener {
	return func(_ context.Context, st *stand, n int) (crew, error) {
		dial := pool.DialRueidis(time.Second)
		c, locker, err := startEngine(st, func(ctx context.Context, m pool.Master, db int) (pool.Link, error) {
			link, err := dial(ctx, m, db)
			if err != nil || !unfenced {
				return link, err
			}
			return &unfencedLink{Link: link}, nil
		})
		if err != nil {
			return crew{}, err
		}
		for i := range n {
			c.workers = append(c.workers, newEngineWorker(locker, i))
		}
		return c, nil
	}
}

// unfencedLink is used by one lane at a time, as every Link.
type unfencedLink struct {
	pool.Link
	kept   []pool.Command
	raised int64 // the register as the daemon believes it
}

// Exchange leaves out the raise, which stands between the score and the time at
// the end of a flush; a heartbeat has none. Either way the daemon reads the
// score that it believes in, or it would take the master for one that forgot.
func (l *unfencedLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	at := len(commands) - 2
	if at >= 0 && commands[at].Args[0] == "ZSCORE" {
		replies = l.Link.Exchange(commands, replies)
		l.lift(replies, at)
		return replies
	}
	if at < 1 || commands[at].Args[0] != "ZADD" {
		return l.Link.Exchange(commands, replies)
	}
	l.kept = append(append(l.kept[:0], commands[:at]...), commands[at+1])
	replies = l.Link.Exchange(l.kept, replies)
	if len(replies) != len(l.kept) {
		return replies
	}
	l.lift(replies, at-1)
	if raise, err := strconv.ParseInt(commands[at].Args[4], 10, 64); err == nil {
		l.raised = max(l.raised, raise)
	}
	clock := replies[at]
	replies[at] = pool.Reply{Kind: pool.ReplyInt}
	return append(replies, clock)
}

// lift shows the score that the register would have.
func (l *unfencedLink) lift(replies []pool.Reply, at int) {
	if at >= len(replies) || replies[at].Kind == pool.ReplyNil {
		return
	}
	if old, ok := replies[at].Number(); ok && old < l.raised {
		replies[at] = pool.Reply{Kind: pool.ReplyInt, Int: l.raised}
	}
}
