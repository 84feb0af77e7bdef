// The peer of the ids: what everybody writes first. Read the counter of all
// masters, take the highest plus one, and write it where it is higher; if a
// majority took it, it is an id, otherwise begin again. Every caller has
// connections of its own and asks all masters at the same time.
package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	naiveKey    = "bench:naive:id"
	naiveScript = "if tonumber(redis.call('GET',KEYS[1]) or '0')<tonumber(ARGV[1]) then redis.call('SET',KEYS[1],ARGV[1]) return 1 end return 0"
	// naivePause is the longest pause before another round; it doubles up to a
	// hundred times as much.
	naivePause = time.Millisecond
)

// openNaive retries at once when the pause is 0.
func openNaive(pause time.Duration) opener {
	return func(ctx context.Context, st *stand, n int) (crew, error) {
		c := crew{close: func() {}}
		for range n {
			w := &naiveWorker{pause: pause}
			for _, address := range st.addresses() {
				conn, err := dialRESP(ctx, address)
				if err != nil {
					return crew{}, errors.Join(err, c.end())
				}
				c.first(conn.close)
				w.masters = append(w.masters, conn)
				sha, err := conn.do("SCRIPT", "LOAD", naiveScript)
				if err != nil {
					return crew{}, errors.Join(err, c.end())
				}
				w.sha = sha.text
			}
			c.workers = append(c.workers, w)
		}
		return c, nil
	}
}

// naiveWorker is one caller.
type naiveWorker struct {
	masters []*respConn
	sha     string
	pause   time.Duration
}

// turn draws one id, however many rounds that takes; a round that the end of
// the run finds under way is the last.
func (w *naiveWorker) turn(n *notes) error {
	stage, began := n.now()
	for longest := w.pause; ; longest = min(2*longest, 100*w.pause) {
		taken, err := w.round()
		if err != nil {
			return err
		}
		if taken {
			n.acquired(stage, began)
			n.released()
			return nil
		}
		if n.over() {
			return nil
		}
		if longest > 0 {
			time.Sleep(rand.N(longest))
		}
	}
}

func (w *naiveWorker) round() (taken bool, err error) {
	answers, err := w.ask("GET", naiveKey)
	if err != nil {
		return false, err
	}
	highest := int64(0)
	for _, a := range answers {
		if value, err := strconv.ParseInt(a.text, 10, 64); err == nil {
			highest = max(highest, value)
		}
	}
	answers, err = w.ask("EVALSHA", w.sha, "1", naiveKey, strconv.FormatInt(highest+1, 10))
	if err != nil {
		return false, err
	}
	votes := int64(0)
	for _, a := range answers {
		votes += a.number
	}
	return votes > int64(len(w.masters)/2), nil
}

// ask sends a command to all masters, then reads all answers.
func (w *naiveWorker) ask(words ...string) ([]reply, error) {
	for _, m := range w.masters {
		m.queue(words...)
		if err := m.flush(); err != nil {
			return nil, err
		}
	}
	var answers []reply
	for _, m := range w.masters {
		r, err := m.read()
		if err = errors.Join(err, r.err()); err != nil {
			return nil, err
		}
		answers = append(answers, r)
	}
	return answers, nil
}
