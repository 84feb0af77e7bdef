package redlock

// trace_test.go: what a Trace receives, and that a request without one costs nothing.

import (
	"sync"
	"testing"
	"time"
)

// A request that is tried several times, and waits, announces every ballot, and each vote comes.
func TestTrace_ReceivesEveryVoteThatWasAnnounced(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	held := d.take(LockRequest{Key: "k"})
	var mu sync.Mutex
	asked, words := 0, map[string]int{}
	trace := &Trace{
		OnBallot: func(n int) { mu.Lock(); asked += n; mu.Unlock() },
		OnVote:   func(v Vote) { mu.Lock(); words[v.Word]++; mu.Unlock() },
	}
	answers := make(chan error, 1) // its one answer
	d.Wait(nil, LockRequest{Key: "k", TTL: time.Minute, Wait: time.Minute, Requester: &Requester{Trace: trace}}, func(_ Grant, err error) { answers <- err })
	if released, err := d.unlock(UnlockRequest{Key: "k", Token: held.Token, Trace: trace}); !released || err != nil {
		t.Fatal(released, err)
	}
	if err := <-answers; err != nil {
		t.Fatal(err)
	}
	d.quiet()
	mu.Lock()
	defer mu.Unlock()
	if asked%5 != 0 || asked < 10 || words[VoteYes]+words[VoteNo]+words[VoteUncounted] != asked || words[VoteYes] < 10 {
		t.Errorf("%d votes announced, %v came", asked, words)
	}
}
