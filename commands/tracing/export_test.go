// Tests of the way to a collector that is away, slow or choosy.

package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"redlockd/pool/faulty"
	"redlockd/redlock"
)

// fakeTransport answers each request with the next of its answers, the last one again and
// again.
type fakeTransport struct {
	answers []fakeAnswer

	mu    sync.Mutex
	sizes []int // of the batches that were sent
}

type fakeAnswer struct {
	status  int // 0 is 200
	refused int64
	err     error
	hangs   bool
}

func (f *fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err := errors.Join(err, proto.Unmarshal(body, &request)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.sizes = append(f.sizes, len(request.ResourceSpans[0].ScopeSpans[0].Spans))
	a := f.answers[min(len(f.sizes), len(f.answers))-1]
	f.mu.Unlock()
	if a.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: a.refused}})
	status := max(a.status, http.StatusOK)
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Body: io.NopCloser(bytes.NewReader(answer)), Request: r,
	}, err
}

func (f *fakeTransport) delivered() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes)
}

// aSpan is sampled, as all spans of a Tracer are.
var aSpan = tracetest.SpanStub{Name: "x", SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceFlags: trace.FlagsSampled})}.Snapshot()

func fakeExporter(t *testing.T, queue int, answers ...fakeAnswer) (*exporter, *fakeTransport, *faulty.Log) {
	t.Helper()
	to, log := &fakeTransport{answers: answers}, new(faulty.Log)
	x, err := newExporter(Options{Endpoint: "http://collector", Queue: queue, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	x.client.Transport = to
	return x, to, log
}

// filled puts n spans into the queue.
func (e *exporter) filled(n int) {
	for range n {
		e.queue.OnEnd(aSpan)
	}
}

func closed(x *exporter, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	x.close(ctx)
}

func TestQueue_SendsTogetherAndAtLeastEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, to, _ := fakeExporter(t, 4096, fakeAnswer{})
		x.filled(3)
		synctest.Wait()
		if len(to.delivered()) != 0 {
			t.Error("sent before others could join")
		}
		time.Sleep(batchInterval + time.Millisecond)
		x.filled(maxBatch)
		synctest.Wait()
		if sizes := to.delivered(); !slices.Equal(sizes, []int{3, maxBatch}) {
			t.Errorf("deliveries of %d", sizes)
		}
		x.filled(5)
		closed(x, time.Second)
		if sent := x.sent.Load(); sent != maxBatch+8 || x.dropped.Load() != 0 {
			t.Errorf("sent %d, dropped %d", sent, x.dropped.Load())
		}
	})
}

func TestQueue_DropsAndCountsWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _, _ := fakeExporter(t, 10, fakeAnswer{hangs: true})
		x.filled(1)
		time.Sleep(batchInterval + time.Millisecond)
		synctest.Wait() // it is with the collector now
		x.filled(25)
		if dropped := x.dropped.Load(); dropped != 16 {
			t.Errorf("dropped %d of 25, 9 fit beside the one under way", dropped)
		}
		began := time.Now()
		closed(x, 300*time.Millisecond)
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("closing took %v", took)
		}
		if sent, dropped := x.sent.Load(), x.dropped.Load(); sent != 0 || dropped != 26 {
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
		{"it comes back", []fakeAnswer{{err: away}, {status: 503}, {}}, 3, 7, 0},
		{"it stays away", []fakeAnswer{{err: away}}, 3, 0, 7},
		{"it refuses them", []fakeAnswer{{status: 400}}, 1, 0, 7},
		{"it takes some", []fakeAnswer{{refused: 2}}, 1, 5, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			x, to, log := fakeExporter(t, 100, c.answers...)
			x.filled(7)
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(to.delivered()) != c.tries || x.sent.Load() != c.sent || x.dropped.Load() != c.dropped {
				t.Errorf("%s: %d tries, sent %d, dropped %d", c.name, len(to.delivered()), x.sent.Load(), x.dropped.Load())
			}
			if logged := strings.Contains(log.String(), "traces dropped"); logged != (c.dropped > 0) {
				t.Errorf("%s: log %q", c.name, log)
			}
			closed(x, time.Second)
		})
	}
}

func TestQueue_LogsOnceAMinuteThatTracesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _, log := fakeExporter(t, 100, fakeAnswer{status: http.StatusGone})
		for range 150 { // two and a half minutes
			x.filled(2)
			time.Sleep(batchInterval)
		}
		synctest.Wait()
		if lines := strings.Count(log.String(), "traces dropped"); lines != 3 || !strings.Contains(log.String(), "410 Gone") {
			t.Errorf("%d lines: %s", lines, log)
		}
		closed(x, time.Second)
	})
}

func TestQueue_ThatIsClosedWhileItPausesGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, to, _ := fakeExporter(t, 100, fakeAnswer{err: errors.New("reset")})
		x.filled(4)
		time.Sleep(batchInterval + time.Millisecond)
		x.filled(3)
		began := time.Now()
		closed(x, time.Hour)
		if took := time.Since(began); took != 0 || x.dropped.Load() != 7 || len(to.delivered()) != 2 {
			t.Errorf("closing took %v, dropped %d, %d tries", took, x.dropped.Load(), len(to.delivered()))
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

func TestExporter_ReadsWhatACollectorAnswers(t *testing.T) {
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
		x, err := newExporter(Options{Endpoint: server.URL + "/own/path"})
		if err != nil || !strings.HasSuffix(x.url, "/own/path") {
			t.Fatal(x, err)
		}
		refused, again, err := x.post(nil)
		if refused != c.refused || again != c.again || (err != nil) != c.fails {
			t.Errorf("%d %q: %d refused, again %v, %v", c.status, c.body, refused, again, err)
		}
		closed(x, soon)
		server.Close()
	}
}
