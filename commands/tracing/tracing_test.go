// Tests of what a collector receives.

package tracing

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"redlockd/redlock"
)

const (
	aTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aParent = "00f067aa0ba902b7"
	sampled = "traceparent=00-" + aTrace + "-" + aParent + "-01"
	skipped = "traceparent=00-" + aTrace + "-" + aParent + "-00"
)

func TestSpan_OfALockHasItsParentItsOutcomeAndEveryMastersVote(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL, Version: "v9"}, five)
	token := redlock.Token("a-token-that-must-stay-secret")
	before := time.Now()
	got := e.lock(redlock.LockRequest{Key: "invoices", Token: token, Requester: &redlock.Requester{Meta: "job 7 " + sampled + " of secret-note"}})
	if got.err != nil {
		t.Fatal(got.err)
	}
	s := c.the("lock.acquire")
	if hex.EncodeToString(s.TraceId) != aTrace || hex.EncodeToString(s.ParentSpanId) != aParent {
		t.Errorf("trace %x, parent %x", s.TraceId, s.ParentSpanId)
	}
	for key, want := range map[string]any{
		"redlockd.key": "invoices", "redlockd.mode": "exclusive", "redlockd.outcome": "granted",
		"redlockd.fence": int64(got.grant.Fence), "redlockd.database": int64(0), "redlockd.ttl_ms": int64(30000),
	} {
		if have := value(s.Attributes, key); have != want {
			t.Errorf("%s is %v, want %v", key, have, want)
		}
	}
	if left, _ := value(s.Attributes, "redlockd.validity_ms").(int64); left < 1 || left > 30000 {
		t.Errorf("validity %d ms", left)
	}
	if v := votes(s); v["yes"] != 5 || len(s.Events) != 5 {
		t.Errorf("votes %v in %d events", v, len(s.Events))
	}
	for _, event := range s.Events {
		if ms, ok := value(event.Attributes, "redlockd.latency_ms").(float64); !ok || ms < 0 || ms > float64(time.Since(before).Milliseconds())+1 {
			t.Errorf("latency %v", value(event.Attributes, "redlockd.latency_ms"))
		}
	}
	if begin, end := int64(s.StartTimeUnixNano), int64(s.EndTimeUnixNano); begin < before.UnixNano() || end < begin || end > time.Now().UnixNano() {
		t.Errorf("from %d to %d", begin, end)
	}
	if value(c.resource, "service.name") != "redlockd" || value(c.resource, "service.version") != "v9" {
		t.Errorf("resource %v", c.resource)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range []string{string(token), token.ShortHash(), "secret-note", "job 7"} {
		if bytes.Contains(c.raw.Bytes(), []byte(secret)) {
			t.Errorf("the collector received %q", secret)
		}
	}
}

func TestSpan_OfAReleaseIsInTheTraceOfItsLock(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL}, five)
	g := e.lock(redlock.LockRequest{Key: "k", Requester: &redlock.Requester{Meta: sampled}}).grant
	extended := await(func(done func(outcome)) {
		e.traced().Extend(nil, redlock.ExtendRequest{Key: "k", Token: g.Token, TTL: 40 * time.Second}, func(g redlock.Grant, err error) { done(outcome{grant: g, err: err}) })
	})
	if extended.err != nil || !e.unlock(redlock.UnlockRequest{Key: "k", Token: g.Token}).yes {
		t.Fatal(extended.err)
	}
	taken := c.the("lock.acquire")
	for _, name := range []string{"lock.extend", "lock.release"} {
		s := c.the(name)
		if hex.EncodeToString(s.TraceId) != aTrace || !bytes.Equal(s.ParentSpanId, taken.SpanId) || votes(s)["yes"] != 5 {
			t.Errorf("%s: trace %x, parent %x, want %x; votes %v", name, s.TraceId, s.ParentSpanId, taken.SpanId, votes(s))
		}
	}
	if e.unlock(redlock.UnlockRequest{Key: "k", Token: g.Token}).yes || len(c.named("lock.release")) != 1 {
		t.Error("a second release belongs to no lease, and was not drawn")
	}
}

func TestSample_FollowsTheClientsDecisionFirst(t *testing.T) {
	for _, one := range []struct {
		meta  string
		share float64
		want  bool
	}{
		{sampled, 0, true}, {sampled, 1, true}, {skipped, 1, false}, {skipped, 0, false}, {"", 0, false}, {"", 1, true},
		{"x" + sampled, 0, false}, {"traceparent=00-0-0-01", 1, true}, {"traceparent=00-0-0-01", 0, false},
		{"traceparent=00-" + strings.Repeat("0", 32) + "-" + aParent + "-01", 0, false},
	} {
		tracer := &Tracer{sample: one.share}
		if got := tracer.wanted(parentIn(one.meta)); got != one.want {
			t.Errorf("%q with a share of %v: %v", one.meta, one.share, got)
		}
	}
	tracer, n := &Tracer{sample: 0.25}, 0
	for range 4000 {
		if tracer.wanted(parentIn("")) {
			n++
		}
	}
	if n < 700 || n > 1300 { // 11 standard deviations
		t.Errorf("%d of 4000 with a share of 0.25", n)
	}
}

// play runs one of everything, and returns how many spans that makes by name.
func (e *testEngine) play() map[string]int {
	traced := e.traced()
	doneIf := func(done func(outcome)) func(bool, error) {
		return func(yes bool, err error) { done(outcome{yes: yes, err: err}) }
	}
	g := e.lock(redlock.LockRequest{Key: "k\xff\x00", Mode: redlock.PermitsOf(3)}).grant
	await(func(done func(outcome)) {
		traced.Wait(nil, redlock.LockRequest{Key: "w", TTL: time.Second, Wait: time.Second, Fair: true, More: []redlock.Key{"z"}}, func(g redlock.Grant, err error) { done(outcome{err: err}) })
	})
	await(func(done func(outcome)) {
		traced.Extend(nil, redlock.ExtendRequest{Key: "k\xff\x00", Token: g.Token, TTL: time.Second}, func(g redlock.Grant, err error) { done(outcome{err: err}) })
	})
	e.unlock(redlock.UnlockRequest{Key: "k\xff\x00", Token: g.Token})
	await(func(done func(outcome)) {
		e.traced().NextID(nil, redlock.IDRequest{Name: "n", Count: 2}, func(first int64, err error) { done(outcome{err: err}) })
	})
	work := func() redlock.Work {
		return await(func(done func(outcome)) {
			traced.Work(nil, redlock.WorkRequest{Key: "j", Timeout: 20 * time.Second, Max: 3}, func(w redlock.Work, err error) { done(outcome{work: w, err: err}) })
		}).work
	}
	w := work()
	await(func(done func(outcome)) {
		traced.WorkExtend(nil, redlock.WorkEndRequest{Key: "j", Token: w.Token, Timeout: 20 * time.Second}, func(_ redlock.Work, err error) { done(outcome{err: err}) })
	})
	await(func(done func(outcome)) {
		traced.WorkFail(nil, redlock.WorkEndRequest{Key: "j", Token: w.Token}, doneIf(done))
	})
	w = work()
	await(func(done func(outcome)) {
		traced.WorkDone(nil, redlock.WorkEndRequest{Key: "j", Token: w.Token}, doneIf(done))
	})
	e.lock(redlock.LockRequest{Key: "p", Token: "value-of-p", Mode: redlock.Valued})
	for _, effect := range []redlock.WriteEffect{redlock.WriteReplaces, redlock.WriteExpires, redlock.WriteDeletes} {
		await(func(done func(outcome)) {
			traced.Write(nil, redlock.WriteRequest{Key: "p", Effect: effect, Value: "another-of-p", TTL: 20 * time.Second}, doneIf(done))
		})
	}
	return map[string]int{
		"lock.acquire": 3, "lock.extend": 2, "lock.release": 2, "lock.change": 1, "ids.next": 1,
		"work.acquire": 2, "work.extend": 1, "work.fail": 1, "work.done": 1,
	}
}

func TestSpan_IsMadeOfEveryKindOfOperationWithAllVotes(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL, Sample: 1}, five)
	want := e.play()
	total := 0
	for name, n := range want {
		total += n
		for end := time.Now().Add(soon); len(c.named(name)) < n && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		found := c.named(name)
		if len(found) != n {
			t.Errorf("%d spans %s, want %d", len(found), name, n)
		}
		for _, s := range found {
			if v := votes(s); v["yes"]+v["no"] != 5 || value(s.Attributes, "redlockd.outcome") == nil {
				t.Errorf("%s: votes %v, %v", name, v, s.Attributes)
			}
		}
	}
	e.tracer.Close(t.Context()) // the last delivery is counted when it has been answered
	if n := e.tracer.Counts(); n.Sent != int64(total) || n.Dropped != 0 {
		t.Errorf("counts %+v, want %d", n, total)
	}
	for _, s := range c.named("lock.acquire") {
		if value(s.Attributes, "redlockd.limit") == int64(3) && value(s.Attributes, "redlockd.key") != "k\uFFFD\x00" {
			t.Errorf("key %q", value(s.Attributes, "redlockd.key"))
		}
	}
}

func TestSpan_NamesTheMastersThatRefused(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL}, five)
	e.lock(redlock.LockRequest{Key: "k"})
	e.lock(redlock.LockRequest{Key: "k", Requester: &redlock.Requester{Meta: sampled}})
	s := c.the("lock.acquire")
	if value(s.Attributes, "redlockd.outcome") != "refused" || votes(s)["no"] != 5 || s.Status.Code != otlp.Status_STATUS_CODE_UNSET || value(s.Attributes, "redlockd.fence") != nil {
		t.Errorf("%v, votes %v, %v", s.Attributes, votes(s), s.Status)
	}
}

func TestSpan_NamesTheMissingMasters(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL, Sample: 1}, absentMasters(t))
	e.lock(redlock.LockRequest{Key: "k"})
	await(func(done func(outcome)) {
		e.traced().NextID(nil, redlock.IDRequest{Name: "n", Count: 1}, func(_ int64, err error) { done(outcome{err: err}) })
	})
	for _, name := range []string{"lock.acquire", "ids.next"} {
		s := c.the(name)
		if value(s.Attributes, "redlockd.outcome") != "no quorum" || s.Status.Code != otlp.Status_STATUS_CODE_ERROR || !strings.Contains(s.Status.Message, "0 of 3 masters answered") {
			t.Errorf("%s: %v %v", name, s.Attributes, s.Status)
		}
		if votes(s)[redlock.VoteUncounted] != 3 || !strings.HasPrefix(value(s.Events[0].Attributes, "redlockd.cause").(string), "not asked") {
			t.Errorf("%s: %v", name, s.Events)
		}
	}
}

func TestSpan_WaitsForTheLastVoteAndEndsWithTheOutcome(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := newEngine(t, Options{Endpoint: c.URL, Sample: 1}, five)
	o := e.tracer.begin("one", parentIn(""))
	o.expectVotes(2)
	o.recordVote(redlock.Vote{Master: "a", Word: redlock.VoteYes})
	o.finish("granted", nil, nil)
	end := time.Now()
	if n := e.tracer.export.waiting.Load(); n != 0 {
		t.Errorf("%d spans are on their way before the last vote", n)
	}
	time.Sleep(time.Millisecond)
	o.recordVote(redlock.Vote{Master: "b", Word: redlock.VoteUncounted, Cause: "late"})
	if s := c.the("one"); len(s.Events) != 2 || int64(s.EndTimeUnixNano) > end.UnixNano() {
		t.Errorf("%d votes, ended %d after the outcome", len(s.Events), int64(s.EndTimeUnixNano)-end.UnixNano())
	}
}

func TestTracer_ThatIsNilWrapsNothing(t *testing.T) {
	var tracer *Tracer
	locker := &redlock.Locker{}
	if engine := (Operations{locker, locker, locker, locker}); tracer.Wrap(engine) != engine {
		t.Error("something stands in front of the engine")
	}
}

func TestNew_RefusesWhatIsNoEndpoint(t *testing.T) {
	for _, bad := range []string{"", "c:4317", "ftp://c", "http://u:S3CR3T@c:1", "http://%zz"} {
		if _, err := New(Options{Endpoint: bad}); err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(Options{Endpoint: "http://c", Sample: 2}); err == nil {
		t.Error("a share of 2 was taken")
	}
}
