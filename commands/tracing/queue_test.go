// Tests of the way to a collector that is away, slow or choosy.

package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"redlockd/pool/faulty"
	"redlockd/redlock"
)

// fakeSender answers each delivery with the next of its answers, the last one
// again and again.
type fakeSender struct {
	answers []fakeAnswer
	log     locked

	mu    sync.Mutex
	sizes []int // of the deliveries
}

// locked is a buffer that a test reads while others write.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type fakeAnswer struct {
	refused int64
	again   bool
	err     error
	hangs   bool
}

func (f *fakeSender) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) (int64, bool, error) {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(spans))
	a := f.answers[min(len(f.sizes), len(f.answers))-1]
	f.mu.Unlock()
	if a.hangs {
		<-ctx.Done()
		return 0, true, ctx.Err()
	}
	return a.refused, a.again, a.err
}

func (f *fakeSender) forget() {}

func (f *fakeSender) delivered() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes)
}

var aSpan = tracetest.SpanStub{Name: "x"}.Snapshot()

func fakeQueue(size int, answers ...fakeAnswer) (*queue, *fakeSender, *locked) {
	to := &fakeSender{answers: answers}
	return newQueue(size, to, slog.New(slog.NewTextHandler(&to.log, nil))), to, &to.log
}

// filled puts n spans into the queue.
func (q *queue) filled(n int) {
	for range n {
		q.OnEnd(aSpan)
	}
}

func closed(q *queue, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.close(ctx)
}

func TestQueue_SendsTogetherAndAtLeastEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, to, _ := fakeQueue(4096, fakeAnswer{})
		q.filled(3)
		synctest.Wait()
		if len(to.delivered()) != 0 {
			t.Error("sent before others could join")
		}
		time.Sleep(batchInterval + time.Millisecond)
		q.filled(maxBatch)
		synctest.Wait()
		if sizes := to.delivered(); !slices.Equal(sizes, []int{3, maxBatch}) {
			t.Errorf("deliveries of %d", sizes)
		}
		q.filled(5)
		closed(q, time.Second)
		if sent := q.sent.Load(); sent != maxBatch+8 || q.dropped.Load() != 0 {
			t.Errorf("sent %d, dropped %d", sent, q.dropped.Load())
		}
	})
}

func TestQueue_DropsAndCountsWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _, _ := fakeQueue(10, fakeAnswer{hangs: true})
		q.filled(1)
		time.Sleep(batchInterval + time.Millisecond)
		synctest.Wait() // it is with the collector now
		q.filled(25)
		if dropped := q.dropped.Load(); dropped != 15 {
			t.Errorf("dropped %d of 25, 10 fit", dropped)
		}
		began := time.Now()
		closed(q, 300*time.Millisecond)
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("closing took %v", took)
		}
		if sent, dropped := q.sent.Load(), q.dropped.Load(); sent != 0 || dropped != 26 {
			t.Errorf("sent %d, dropped %d", sent, dropped)
		}
	})
}

func TestQueue_RetriesWhatMayPass(t *testing.T) {
	away := errors.New("connection refused")
	for _, c := range []struct {
		name          string
		answers       []fakeAnswer
		tries         int
		sent, dropped int64
	}{
		{"it comes back", []fakeAnswer{{again: true, err: away}, {again: true, err: away}, {}}, 3, 7, 0},
		{"it stays away", []fakeAnswer{{again: true, err: away}}, 3, 0, 7},
		{"it refuses them", []fakeAnswer{{err: errors.New("400")}}, 1, 0, 7},
		{"it takes some", []fakeAnswer{{refused: 2}}, 1, 5, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			q, to, log := fakeQueue(100, c.answers...)
			q.filled(7)
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(to.delivered()) != c.tries || q.sent.Load() != c.sent || q.dropped.Load() != c.dropped {
				t.Errorf("%s: %d tries, sent %d, dropped %d", c.name, len(to.delivered()), q.sent.Load(), q.dropped.Load())
			}
			if logged := strings.Contains(log.String(), "traces dropped"); logged != (c.dropped > 0) {
				t.Errorf("%s: log %q", c.name, log)
			}
			closed(q, time.Second)
		})
	}
}

func TestQueue_LogsOnceAMinuteThatTracesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _, log := fakeQueue(100, fakeAnswer{err: errors.New("410 Gone")})
		for range 150 { // two and a half minutes
			q.filled(2)
			time.Sleep(batchInterval)
		}
		synctest.Wait()
		if lines := strings.Count(log.String(), "traces dropped"); lines != 3 || !strings.Contains(log.String(), "410 Gone") {
			t.Errorf("%d lines: %s", lines, log)
		}
		closed(q, time.Second)
	})
}

func TestQueue_ThatIsClosedWhileItPausesGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, to, _ := fakeQueue(100, fakeAnswer{again: true, err: errors.New("reset")})
		q.filled(4)
		time.Sleep(batchInterval + time.Millisecond)
		q.filled(3)
		began := time.Now()
		closed(q, time.Hour)
		if took := time.Since(began); took != 0 || q.dropped.Load() != 7 || len(to.delivered()) != 2 {
			t.Errorf("closing took %v, dropped %d, %d tries", took, q.dropped.Load(), len(to.delivered()))
		}
	})
}

// A dead collector costs spans, and neither an operation nor the shutdown.
func TestTracer_WorksWithADeadCollector(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, address := range []string{faulty.FreeAddr(t), silent.Addr().String()} {
		e := newEngine(t, Options{Endpoint: "http://" + address, Sample: 1, Queue: 4}, five)
		for range 20 {
			g := e.lock(redlock.LockRequest{Key: "k"})
			if g.err != nil || !e.unlock(redlock.UnlockRequest{Key: "k", Token: g.grant.Token}).yes {
				t.Fatal(g.err)
			}
		}
		if err := e.Locker.Close(soon); err != nil { // every master has voted
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		e.tracer.Close(ctx)
		cancel()
		if n := e.tracer.Counts(); n.Sent != 0 || n.Dropped != 40 {
			t.Errorf("%+v", n)
		}
	}
}

func TestTarget_ReadsWhatACollectorAnswers(t *testing.T) {
	partial, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status  int
		body    []byte
		refused int64
		again   bool
		fails   bool
	}{
		{200, nil, 0, false, false}, {200, partial, 1, false, false}, {200, []byte("\xff\xff"), 0, false, false},
		{400, nil, 0, false, true}, {401, nil, 0, false, true}, {307, nil, 0, false, true},
		{429, nil, 0, true, true}, {503, nil, 0, true, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write(c.body)
		}))
		to, err := newTarget(server.URL + "/own/path")
		if err != nil || !strings.HasSuffix(to.url, "/own/path") {
			t.Fatal(to, err)
		}
		refused, again, err := to.send(context.Background(), []sdktrace.ReadOnlySpan{aSpan})
		if refused != c.refused || again != c.again || (err != nil) != c.fails {
			t.Errorf("%d %q: %d refused, again %v, %v", c.status, c.body, refused, again, err)
		}
		to.forget()
		server.Close()
	}
}
