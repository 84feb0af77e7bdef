package redlocktest

import (
	"testing"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// Await waits until a master has this state for the daemon.
func Await(t *testing.T, e *engine.Engine, i int, want string) {
	t.Helper()
	Eventually(t, "master "+Name(i)+" is "+want, func() bool { return e.Pool.Group(0).Statuses()[i].State == want })
}

// Settled waits until the daemon has nothing left to send to these masters.
func Settled(t *testing.T, e *engine.Engine, masters ...int) {
	t.Helper()
	for _, i := range masters {
		Eventually(t, "the daemon has no pending release for master "+Name(i), func() bool {
			s := e.Pool.Group(0).Statuses()[i]
			return (s.State == "voting" || s.State == "quarantined") && s.PendingReleases == 0 && e.Pool.Busy() == 0
		})
	}
}

// Idle waits until nothing is on its way to a master, not even the heartbeat that follows an
// admission.
func Idle(t *testing.T, e *engine.Engine) {
	t.Helper()
	var answers []<-chan pool.Answer
	for i := range e.Pool.N() {
		answers = append(answers, barrier(e, i, pool.Props{}))
	}
	for _, answer := range answers {
		Receive(t, answer)
	}
}

// IdleOn waits until a master's answers to what it was sent have been counted, also those
// that wait for a seal.
func IdleOn(t *testing.T, e *engine.Engine, i int) {
	t.Helper()
	Receive(t, barrier(e, i, pool.Props{Sealed: true}))
}

// barrier sends an operation that only has its place in a queue: what was sent before it has
// been executed when it is answered. Unless the plan is sealed no register rises, and
// answers that wait for a seal may come later.
func barrier(e *engine.Engine, i int, plan pool.Props) <-chan pool.Answer {
	answered := make(chan pool.Answer, 1) // 1: its one answer
	e.Pool.Group(0).Push(i, &engine.Message{
		Plan:     plan,
		Write:    func(_ *pool.SendContext, c *pool.Command) bool { c.Set("PING"); return true },
		OnAnswer: func(a pool.Answer) { answered <- a },
	})
	return answered
}

// Holders counts the masters inside this process that hold the key for a token.
func Holders(e *engine.Engine, db int, key, token string) (n int) {
	for lane := range e.Pool.N() {
		if got, err := e.Pool.Embedded().At(lane).Server().DB(db).Get(key); err == nil && got == token {
			n++
		}
	}
	return n
}
