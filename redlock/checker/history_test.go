package checker

import (
	"bytes"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecorder_KeepsEveryCallOfClientsThatWorkAtOnce(t *testing.T) {
	const clients, calls = 8, 500
	r := NewRecorder(nil)
	var all sync.WaitGroup
	for range clients {
		c := r.Client()
		all.Go(func() {
			for range calls {
				c.Begin(Acquire, "k", "").Refused()
			}
		})
	}
	all.Wait()
	h := r.History()
	perClient := map[int]int{}
	for i, e := range h {
		perClient[e.Client]++
		if e.Outcome != No || e.Complete < e.Invoke || i > 0 && e.Invoke < h[i-1].Invoke {
			t.Fatalf("event %d: %v", i, &e)
		}
	}
	if len(h) != clients*calls || len(perClient) != clients || perClient[clients-1] != calls {
		t.Errorf("%d events of %d clients, want %d of %d", len(h), len(perClient), clients*calls, clients)
	}
}

func TestRecorder_WritesDownWhatEachAnswerMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := NewRecorder(nil)
		c := r.Client()
		after := func(d time.Duration, call PendingCall) PendingCall { time.Sleep(d); return call }
		after(ms(5), c.Begin(Acquire, "k", "")).Granted("t", ms(100), 7)
		after(ms(5), c.Begin(Extend, "k", "t")).GrantedUntil("t", r.At(start.Add(ms(205))), 0)
		after(ms(1), c.Begin(Extend, "k", "t")).Unknown()
		after(ms(1), c.Begin(Release, "k", "t")).Released(true)
		after(ms(1), c.Begin(Release, "k", "t")).Released(false)
		c.Begin(Acquire, "k", "u")
		want := History{
			{Op: Acquire, Key: "k", Token: "t", Invoke: 0, Complete: ms(5), Outcome: OK, Validity: ms(100), Fence: 7},
			{Op: Extend, Key: "k", Token: "t", Invoke: ms(5), Complete: ms(10), Outcome: OK, Validity: ms(195)},
			{Op: Extend, Key: "k", Token: "t", Invoke: ms(10), Complete: ms(11), Outcome: Unknown},
			{Op: Release, Key: "k", Token: "t", Invoke: ms(11), Complete: ms(12), Outcome: OK, Released: true},
			{Op: Release, Key: "k", Token: "t", Invoke: ms(12), Complete: ms(13), Outcome: OK},
			{Op: Acquire, Key: "k", Token: "u", Invoke: ms(13), Complete: Never, Outcome: Unknown},
		}
		if got := r.History(); !reflect.DeepEqual(got, want) {
			t.Errorf("recorded:\n%v\nwant:\n%v", listing(got), listing(want))
		}
		if err := r.History().Validate(); err != nil {
			t.Error(err)
		}
		if got := r.Now(); got != ms(13) {
			t.Errorf("the clock reads %v, want 13ms", got)
		}
	})
}

func TestRecorder_ReadsTheClockItWasGiven(t *testing.T) {
	now := ms(40)
	r := NewRecorder(func() time.Duration { return now })
	call := r.Client().Begin(Acquire, "k", "")
	now = ms(42)
	call.GrantedUntil("t", ms(142), 1)
	if e := r.History()[0]; e.Invoke != ms(40) || e.Complete != ms(42) || e.Validity != ms(100) {
		t.Errorf("recorded %v, want it at [40ms, 42ms] with 100ms left", &e)
	}
}

func TestRecorder_TakesAnswersInAnyOrderOnAnyGoroutine(t *testing.T) {
	r := NewRecorder(nil)
	c := r.Client()
	first, second := c.Begin(Acquire, "k", "a"), c.Begin(Acquire, "k", "b")
	var done sync.WaitGroup
	done.Go(second.Refused)
	done.Wait()
	if h := r.History(); h[0].Complete != Never || h[1].Outcome != No {
		t.Errorf("with one answer missing:\n%v", listing(h))
	}
	first.Granted("a", ms(1), 0)
	if h := r.History(); h[0].Outcome != OK || h[1].Token != "b" {
		t.Errorf("with both answers:\n%v", listing(h))
	}
}

func TestDump_ReportsAWriterThatFails(t *testing.T) {
	h := legalHistory(3, 4, 200)
	if err := h.Dump(brokenWriter{}); err == nil {
		t.Error("no error")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }
