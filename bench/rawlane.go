// Raw lanes, which show whether the client library limits a lane. The engine uses links
// of this file instead of rueidis. Commands are encoded into one buffer, a flush is one
// write, and replies are read one by one. There is no TLS, no login, and no guard against
// invalid data of a master. So this is the most that a lane could gain.

package main

import (
	"context"
	"fmt"

	"redlockd/pool"
	"redlockd/proxy/resp"
)

func rawLaneName(n int) string { return "engine in process, raw lanes, " + callers(n) }

func rawLaneScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 64, 256} {
		all = append(all, scenario{
			name: rawLaneName(n),
			page: pageModes, peer: engineName(n), run: pairs(n, openEngineOn(dialRaw)),
		})
	}
	return all
}

func dialRaw(ctx context.Context, m pool.Master, _ int) (pool.Link, error) {
	conn, err := dialRESP(ctx, m.Address)
	if err != nil {
		return nil, err
	}
	return &rawLink{conn: conn}, nil
}

// rawLink is one connection to one master, in RESP2.
type rawLink struct{ conn *respConn }

func (l *rawLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	for i := range commands {
		l.conn.queue(commands[i].Args...)
	}
	replies = replies[:0]
	err := l.conn.flush()
	for range commands {
		var r pool.Reply
		if err == nil {
			r, err = l.reply()
		}
		if err != nil {
			r = pool.Reply{Kind: pool.ReplyError, Err: err}
		}
		replies = append(replies, r)
	}
	return replies
}

func (l *rawLink) Close() { l.conn.close() }

// reply converts the next reply of a master for the lanes. err is an error of the connection
// only.
func (l *rawLink) reply() (pool.Reply, error) {
	r, err := l.conn.read()
	if err != nil {
		return pool.Reply{}, err
	}
	return asLane(&r)
}

func asLane(r *resp.Value) (pool.Reply, error) {
	switch r.Kind {
	case '_':
		return pool.Reply{}, nil
	case '+', '$':
		return pool.Reply{Kind: pool.ReplyString, Str: r.Text}, nil
	case ':':
		return pool.Reply{Kind: pool.ReplyInt, Int: r.Int}, nil
	case '-':
		return pool.Reply{Kind: pool.ReplyError, Err: pool.MasterError(r.Text)}, nil
	case '*':
		items := make([]pool.Reply, len(r.Items))
		for i := range r.Items {
			var err error
			if items[i], err = asLane(&r.Items[i]); err != nil {
				return pool.Reply{}, err
			}
		}
		return pool.Reply{Kind: pool.ReplyArray, Items: items}, nil
	}
	return pool.Reply{}, fmt.Errorf("reply of type %q", r.Kind)
}
