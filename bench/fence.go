// The cost of the fence. The peer is the same engine, whose flushes end with the
// identity and the clock only. Its links leave out the command that raises the
// register of a master, and return the score that the register would have. Both sides
// have their own masters, because no other daemon may trust such registers.

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
	own := testbedOptions{}
	return []scenario{
		{name: unfencedName, page: pageModes, run: onOwnTestbed(own, pairs(fenceCallers, openThrough(true)))},
		{name: fencedName, page: pageModes, peer: unfencedName, run: onOwnTestbed(own, pairs(fenceCallers, openThrough(false)))},
	}
}

// openThrough opens the engine with links of this file. They raise the register or leave it
// out; everything else is the same.
func openThrough(unfenced bool) opener {
	return func(_ context.Context, tb *testbed, n int) (workerSet, error) {
		dial := pool.DialRueidis(time.Second)
		c, locker, err := startEngine(tb, func(ctx context.Context, m pool.Master, db int) (pool.Link, error) {
			link, err := dial(ctx, m, db)
			if err != nil || !unfenced {
				return link, err
			}
			return &unfencedLink{Link: link}, nil
		})
		if err != nil {
			return workerSet{}, err
		}
		for i := range n {
			c.workers = append(c.workers, newEngineWorker(locker, i))
		}
		return c, nil
	}
}

// unfencedLink is a Link without a register. As every Link, it serves one lane at a time.
type unfencedLink struct {
	pool.Link
	remaining []pool.Command
	raised    int64 // the value that the daemon expects in the register
}

// Exchange leaves out the raise, which is between the score and the time at the end of a
// flush. A heartbeat has no raise. In both cases the daemon must read the score that it
// expects, or it would treat the master as one that lost its memory.
func (l *unfencedLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	at := len(commands) - 2
	if at >= 0 && commands[at].Args[0] == "ZSCORE" {
		replies = l.Link.Exchange(commands, replies)
		l.replaceScore(replies, at)
		return replies
	}
	if at < 1 || commands[at].Args[0] != "ZADD" {
		return l.Link.Exchange(commands, replies)
	}
	l.remaining = append(append(l.remaining[:0], commands[:at]...), commands[at+1])
	replies = l.Link.Exchange(l.remaining, replies)
	if len(replies) != len(l.remaining) {
		return replies
	}
	l.replaceScore(replies, at-1)
	changed := pool.Reply{Kind: pool.ReplyInt} // what ZADD answers with CH: 1 if it raised the register
	if raise, err := strconv.ParseInt(commands[at].Args[5], 10, 64); err == nil && raise > l.raised {
		l.raised, changed.Int = raise, 1
	}
	clock := replies[at]
	replies[at] = changed
	return append(replies, clock)
}

// replaceScore sets the score that the register would have.
func (l *unfencedLink) replaceScore(replies []pool.Reply, at int) {
	if at >= len(replies) || replies[at].Kind == pool.ReplyNil {
		return
	}
	if old, ok := replies[at].Number(); ok && old < l.raised {
		replies[at] = pool.Reply{Kind: pool.ReplyInt, Int: l.raised}
	}
}
