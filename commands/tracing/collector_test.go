// A collector inside this process, and a daemon's engine behind a Tracer.

package tracing

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock"
)

// ants keeps a pool of its own from the start of the program on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const soon = time.Minute // bounds waits for what must happen

// testCollector keeps what it is sent.
type testCollector struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	spans    []*otlp.Span
	resource []*common.KeyValue
	raw      bytes.Buffer
}

func newCollector(t *testing.T) *testCollector {
	c := &testCollector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *testCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s %q: %v", r.Method, r.URL, r.Header, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, rs := range request.ResourceSpans {
		c.resource = rs.Resource.Attributes
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// named are the spans of a name that have come.
func (c *testCollector) named(name string) (found []*otlp.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// the waits for the one span of a name.
func (c *testCollector) the(name string) *otlp.Span {
	c.t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if found := c.named(name); len(found) > 0 {
			return found[0]
		}
	}
	c.t.Fatalf("no span %s came", name)
	return nil
}

// value is an attribute as Go has it; nil if there is none.
func value(list []*common.KeyValue, key string) any {
	for _, a := range list {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return v.IntValue
		case *common.AnyValue_BoolValue:
			return v.BoolValue
		case *common.AnyValue_DoubleValue:
			return v.DoubleValue
		case *common.AnyValue_ArrayValue:
			return len(v.ArrayValue.Values)
		}
	}
	return nil
}

// votes counts a span's votes by word.
func votes(s *otlp.Span) map[any]int {
	words, masters := map[any]int{}, map[any]bool{}
	for _, e := range s.Events {
		if name := value(e.Attributes, "redlockd.master"); e.Name == "vote" && !masters[name] {
			masters[name] = true
			words[value(e.Attributes, "redlockd.vote")]++
		}
	}
	return words
}

// testEngine is what the commands have behind them.
type testEngine struct {
	*redlock.Locker
	tracer *Tracer
	t      *testing.T
}

func newEngine(t *testing.T, o Options, masters pool.Options) *testEngine {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	masters.Logger = o.Logger
	p, err := pool.New(masters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	locker, err := redlock.New(p, redlock.Options{Logger: o.Logger, VolatileIDs: true})
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		tracer.Close(ctx)
	})
	return &testEngine{locker, tracer, t}
}

// five are masters that answer; a busy machine does not reach the timeout.
var five = pool.Options{Embedded: 5, MasterTimeout: time.Minute}

// absentMasters are three masters of which none is there.
func absentMasters(t *testing.T) pool.Options {
	o := pool.Options{MasterTimeout: 100 * time.Millisecond}
	for _, name := range []string{"a", "b", "c"} {
		o.Masters = append(o.Masters, pool.Master{Name: name, Address: faulty.FreeAddr(t)})
	}
	return o
}

// outcome is the result of any operation.
type outcome struct {
	grant redlock.Grant
	work  redlock.Work
	yes   bool
	err   error
}

// await waits for the one answer.
func await(call func(done func(outcome))) outcome {
	answers := make(chan outcome, 1) // its one answer
	call(func(o outcome) { answers <- o })
	return <-answers
}

func (e *testEngine) traced() Operations {
	return e.tracer.Wrap(Operations{e.Locker, e.Locker, e.Locker, e.Locker})
}

func (e *testEngine) lock(r redlock.LockRequest) outcome {
	if r.TTL == 0 {
		r.TTL = 30 * time.Second
	}
	return await(func(done func(outcome)) {
		e.traced().Lock(nil, r, func(g redlock.Grant, err error) { done(outcome{grant: g, err: err}) })
	})
}

func (e *testEngine) unlock(r redlock.UnlockRequest) outcome {
	return await(func(done func(outcome)) {
		e.traced().Unlock(nil, r, func(yes bool, err error) { done(outcome{yes: yes, err: err}) })
	})
}
