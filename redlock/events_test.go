package redlock

// events_test.go: the events of locks within a daemon.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/events"
	"redlockd/redlock/redlocktest"
)

// journal is what a listener has received.
type journal struct {
	mu  sync.Mutex
	all []events.Event
	end func()
}

func listen(t *testing.T, l *Locker) *journal {
	t.Helper()
	j := &journal{}
	j.end = l.Listen(0, func(e events.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.all = append(j.all, e)
	})
	t.Cleanup(j.end)
	return j
}

// of are the events of a key, in order: "acquired 17".
func (j *journal) of(key Key) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		if e.Key == key {
			lines = append(lines, tale(e.Kind, e.Fence))
		}
	}
	return lines
}

// wants waits for the events of a key and checks that there are no others
// before or between.
func (j *journal) wants(t *testing.T, key Key, lines ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events of %q are told", len(lines), key), func() bool { return len(j.of(key)) >= len(lines) })
	j.has(t, key, lines...)
}

func (j *journal) has(t *testing.T, key Key, lines ...string) {
	t.Helper()
	if got := j.of(key); fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("told of %q: %q, want %q", key, got, lines)
	}
}

func tale(kind events.Kind, fence Fence) string {
	return fmt.Sprint(strings.Fields(events.Event{Kind: kind}.Text())[0], " ", fence)
}

// The release joins an earlier one in the same flush, so it is executed before the acquire.
func TestEvents_AReleaseThatMakesRoomComesBeforeTheGrant(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	other, writer := d.take(LockRequest{Key: "other", TTL: long}), d.take(LockRequest{Key: "k", TTL: long})
	redlocktest.Idle(t, d.engine)
	var b Batch
	reader := make(chan lockAnswer, 1)
	d.Unlock(&b, UnlockRequest{Key: "other", Token: other.Token}, func(bool, error) {})
	d.Lock(&b, LockRequest{Key: "k", TTL: long, Mode: Readers}, func(g Grant, err error) { reader <- lockAnswer{g, err} })
	d.Unlock(&b, UnlockRequest{Key: "k", Token: writer.Token}, func(bool, error) {})
	b.Send()
	a := receive(t, reader)
	if a.err != nil {
		t.Fatalf("the reader in front of the writer's release: %v", a.err)
	}
	j.wants(t, "k", tale(events.Acquired, writer.Fence), tale(events.Released, writer.Fence), tale(events.Acquired, a.grant.Fence))
}

func TestEvents_ReportAGrantAndItsRelease(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	const key = "line\nbreak \x00 and space"
	before := time.Now()
	g := d.take(LockRequest{Key: key})
	d.take(LockRequest{Key: "other"})
	if released, err := d.unlock(UnlockRequest{Key: key, Token: g.Token}); !released || err != nil {
		t.Fatalf("released %v, %v", released, err)
	}
	if released, _ := d.unlock(UnlockRequest{Key: key, Token: g.Token}); released {
		t.Fatal("released twice")
	}
	again := d.take(LockRequest{Key: key})
	j.wants(t, key, tale(events.Acquired, g.Fence), tale(events.Released, g.Fence), tale(events.Acquired, again.Fence))
	j.mu.Lock()
	defer j.mu.Unlock()
	sum := sha256.Sum256([]byte(g.Token))
	first := j.all[0]
	if first.TokenHash != hex.EncodeToString(sum[:4]) || first.At.Before(before.Add(-time.Minute)) || first.At.After(time.Now().Add(time.Minute)) {
		t.Errorf("%+v of token %s", first, g.Token)
	}
	if want := fmt.Sprintf("acquired %d %d %x", g.Fence, first.At.UnixMilli(), sum[:4]); first.Text() != want {
		t.Errorf("text %q, want %q", first.Text(), want)
	}
	if text := (events.Event{Kind: events.Forced, At: time.UnixMilli(5)}).Text(); text != "forced 0 5 -" {
		t.Errorf("text %q", text)
	}
}

func TestEvents_ANewHolderIsReportedBehindTheOneBefore(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	const callers, rounds = 4, 25
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range rounds {
				answers := make(chan Grant, 1)
				d.Wait(nil, LockRequest{Key: "k", TTL: 20 * time.Second, Wait: time.Minute}, func(g Grant, err error) {
					if err != nil {
						t.Error(err)
					}
					answers <- g
				})
				g := <-answers
				released := make(chan bool, 1)
				d.Unlock(nil, UnlockRequest{Key: "k", Token: g.Token}, func(was bool, _ error) { released <- was })
				<-released
			}
		}()
	}
	all.Wait()
	eventually(t, "all events are told", func() bool { return len(j.of("k")) >= 2*callers*rounds })
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, e := range j.all {
		want := events.Acquired
		if i%2 == 1 {
			want = events.Released
		}
		if e.Kind != want || i%2 == 1 && e.Fence != j.all[i-1].Fence {
			t.Fatalf("event %d is %s, behind %s", i, e.Text(), j.all[max(i, 1)-1].Text())
		}
	}
}

func TestEvents_ALostLockIsNotAlsoReleased(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	lost := make(chan error, 2) // 2: so that a second loss would be seen
	g := d.take(LockRequest{Key: "k", TTL: 3 * time.Second, Hold: &HoldTerms{MaxTime: time.Second, OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	if reason := <-lost; reason == nil {
		t.Fatal("released, want lost")
	}
	d.quiet()
	var other Grant
	eventually(t, "what is left has run out", func() bool {
		var err error
		other, err = d.lock(LockRequest{Key: "k", TTL: long})
		return err == nil
	})
	j.wants(t, "k", tale(events.Acquired, g.Fence), tale(events.Lost, g.Fence), tale(events.Acquired, other.Fence))
}

func TestEvents_AnAcquiredLockHasTheTextOfItsHolderThroughEveryDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	here, there := listen(t, one.Locker), listen(t, two.Locker)
	text := func(j *journal) string {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, e := range j.all {
			if e.Key == "k" && e.Kind == events.Acquired {
				return e.Text()
			}
		}
		return ""
	}
	const meta = "node 7\n\x00"
	eventually(t, "both receive the text", func() bool {
		g := one.get(LockRequest{Key: "k", Requester: &Requester{Meta: meta}})
		one.free("k", g.Token)
		return strings.HasSuffix(text(here), " "+meta) && strings.HasSuffix(text(there), " "+meta)
	})
	if strings.Count(text(there), " ") != 5 {
		t.Errorf("%q", text(there))
	}
}
