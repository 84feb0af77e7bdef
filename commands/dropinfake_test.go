// The fake masters of clients that use the daemon as one Redis.

package commands_test

import (
	"fmt"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/pool"
	"redlockd/redlock"
)

// oneRedis plays a quorum that agrees in everything: a map of values.
type oneRedis struct {
	*fakeLocks
	views   map[redlock.Key]redlock.View
	written []redlock.WriteRequest
	awaited []string
	wrote   bool
	failure error
	free    func(bool, error)

	forwarded []string // what --compat-test sends to the masters
	reply     pool.Reply
}

var _ commands.RedisCompat = (*oneRedis)(nil)

func (o *oneRedis) View(_ *redlock.Batch, _ int, key redlock.Key, done redlock.ViewDone) {
	v, ok := o.views[key]
	if !ok {
		v = redlock.View{Kind: "none"}
	}
	done(v, o.failure)
}

func (o *oneRedis) Observe(_ *redlock.Batch, _ int, key redlock.Key, done redlock.ObserveDone) {
	if o.failure != nil {
		done(nil, o.failure)
		return
	}
	o.View(nil, 0, key, func(v redlock.View, _ error) { done(&redlock.Observation{View: v}, nil) })
}

func (o *oneRedis) Write(_ *redlock.Batch, r redlock.WriteRequest, done redlock.WriteDone) {
	o.written = append(o.written, r)
	done(o.wrote, o.failure)
}

func (o *oneRedis) AwaitFree(r redlock.AwaitRequest, done redlock.AwaitDone) func() {
	o.awaited = append(o.awaited, fmt.Sprint(r.Key, " ", r.Timeout))
	o.free = done
	return func() { done(false, nil) }
}

func (o *oneRedis) Forward(_ *redlock.Batch, r redlock.ForwardRequest, done redlock.ForwardDone) {
	if r.Words[0] == "EVAL" {
		r.Words = append([]string{"EVAL", firstLine(r.Words[1])}, r.Words[2:]...)
	}
	o.forwarded = append(o.forwarded, fmt.Sprintf("%d %q %v", r.DB, r.Words, r.Names))
	done(o.reply, nil)
}

// dropinConversation is one client of a daemon with these policies.
func dropinConversation(t *testing.T, env commands.Deps) (*conversation, *oneRedis) {
	c := newConversation(t)
	o := &oneRedis{fakeLocks: c.locks, views: map[redlock.Key]redlock.View{}}
	env.Locks, env.RedisCompat, env.Databases = c.locks, o, 16
	c.serve(env)
	return c, o
}

// grantsAll has every acquire granted.
func (c *conversation) grantsAll() {
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		g := grant(c.t, r.Token, 41, r.TTL-time.Millisecond, &stillClock{now: time.Second})
		g.Key, g.More = r.Key, r.More
		return g, nil
	}
}

func (c *conversation) refusesAll() {
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrHeld }
}
