package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQueue_IsAQueueAndKeepsItsMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var q queue
	var model []int64
	next := int64(0)
	turn := func(in, out int) {
		for range in {
			next++
			q.push(queueEntry{fence: next})
			model = append(model, next)
		}
		out = min(out, len(model))
		for i := range out {
			if q.entries[i].fence != model[i] {
				t.Fatalf("place %d is %d, want %d", i, q.entries[i].fence, model[i])
			}
		}
		q.drop(out)
		model = model[out:]
		if len(q.entries) != len(model) {
			t.Fatalf("%d queued, want %d", len(q.entries), len(model))
		}
	}
	for range 20_000 {
		turn(r.IntN(40), r.IntN(41))
		switch r.IntN(500) {
		case 0: // as when a connection ends
			if got := len(q.take()); got != len(model) {
				t.Fatalf("%d taken, want %d", got, len(model))
			}
			model = nil
		case 1: // as when it is made
			first := make([]queueEntry, r.IntN(3), 8)
			for i := range first {
				next++
				first[i].fence = next
			}
			q.pushFirst(first)
			for i := range first {
				model = slices.Insert(model, i, first[i].fence)
			}
		}
	}
	model = nil
	q.take()
	through := func() {
		for range 256 {
			q.push(queueEntry{})
		}
		q.drop(256)
	}
	for range 600 {
		q.push(queueEntry{})
	}
	for range 20 {
		through()
	}
	if n := testing.AllocsPerRun(200, through); n != 0 {
		t.Errorf("%.2f allocations for 256 operations through a queue of 600", n)
	}
}
