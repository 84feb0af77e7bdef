// exporter sends spans by OTLP over HTTP, a POST of protobuf; no operation waits for it.
// The SDK's batch processor queues them. The exporter counts what arrived and what was lost:
// the processor and the SDK's own exporter count neither, and the latter adds 14 MB (gRPC).

package tracing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// defaultPath is where receivers listen unless they are configured otherwise.
	defaultPath  = "/v1/traces"
	defaultQueue = 4096
	// maxBatch is how many spans are sent at once, and batchInterval how often fewer are:
	// spans are for people, to whom a second is short.
	maxBatch      = 512
	batchInterval = time.Second
	// maxTries of a batch that the collector may still accept, with a retryPause that
	// doubles between them; meanwhile the queue fills.
	maxTries   = 3
	retryPause = time.Second
	// postTimeout bounds one try.
	postTimeout = 5 * time.Second
	// maxAnswerBytes is how much of a collector's answer is read.
	maxAnswerBytes = 64 << 10
	// logInterval is the least time between two lines in the log about lost spans.
	logInterval = time.Minute
)

// retryable are answers after which the same spans may be sent again.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// exporter sends the batches of its queue.
type exporter struct {
	url    string
	client http.Client
	logger *slog.Logger
	queue  limited
	limit  int64 // of waiting

	waiting, sent, dropped atomic.Int64

	closing, aborted context.Context // end the pauses between tries, and a try under way
	endPauses, abort context.CancelFunc
	ended            chan struct{} // closed by Shutdown

	logged     int64 // dropped, when it was last logged
	lastLogged time.Time
}

func newExporter(o Options) (*exporter, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, errors.New("endpoint: is not a URL") // not repeated: it may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("endpoint: %q is not a URL of the form http[s]://host:port[/path] without a password", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = defaultPath
	}
	x := &exporter{
		url: u.String(), logger: cmp.Or(o.Logger, slog.Default()), limit: int64(cmp.Or(o.Queue, defaultQueue)), ended: make(chan struct{}),
		client: http.Client{
			Timeout:       postTimeout,
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: postTimeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	x.aborted, x.abort = context.WithCancel(context.Background())
	x.closing, x.endPauses = context.WithCancel(x.aborted)
	x.queue = limited{sdktrace.NewBatchSpanProcessor(x, sdktrace.WithMaxQueueSize(int(x.limit)),
		sdktrace.WithMaxExportBatchSize(maxBatch), sdktrace.WithBatchTimeout(batchInterval)), x}
	return x, nil
}

// limited is the queue with a limit in front that counts what does not fit: the SDK does
// not report it.
type limited struct {
	sdktrace.SpanProcessor
	to *exporter
}

// OnEnd takes a span. It is called where votes are counted, and never blocks.
func (l limited) OnEnd(s sdktrace.ReadOnlySpan) {
	if l.to.waiting.Add(1) > l.to.limit {
		l.to.waiting.Add(-1)
		l.to.dropped.Add(1)
		return
	}
	l.SpanProcessor.OnEnd(s)
}

// ExportSpans sends a batch, or drops it. Close ends it; the SDK's context does not.
func (e *exporter) ExportSpans(_ context.Context, batch []sdktrace.ReadOnlySpan) error {
	n := int64(len(batch))
	lost, err := e.deliver(batch)
	if err != nil {
		lost = n
	}
	e.waiting.Add(-n)
	e.sent.Add(n - lost)
	e.dropped.Add(lost)
	e.logDropped(err)
	return nil // reported already
}

// deliver returns how many spans the collector refused for good.
func (e *exporter) deliver(batch []sdktrace.ReadOnlySpan) (refused int64, err error) {
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: resourceSpans(batch)})
	if err != nil {
		return 0, err
	}
	for try := 0; ; try++ {
		refused, again, err := e.post(body)
		if err == nil || !again || try+1 == maxTries {
			return min(refused, int64(len(batch))), err
		}
		select {
		case <-time.After(retryPause << try):
		case <-e.closing.Done():
			return 0, err
		}
	}
}

// post sends a request. again reports whether a failure may be over at the next try.
func (e *exporter) post(body []byte) (refused int64, again bool, err error) {
	request, err := http.NewRequestWithContext(e.aborted, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := e.client.Do(request)
	if err != nil {
		return 0, true, err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if response.StatusCode != http.StatusOK {
		return 0, slices.Contains(retryable, response.StatusCode), fmt.Errorf("%s answered %s", e.url, response.Status)
	}
	if err != nil {
		return 0, false, errors.Join(errors.New("the collector took the spans and did not finish its answer"), err)
	}
	var answer collector.ExportTraceServiceResponse
	if proto.Unmarshal(received, &answer) != nil {
		return 0, false, nil // taken all the same
	}
	return max(answer.GetPartialSuccess().GetRejectedSpans(), 0), false, nil
}

// logDropped logs that spans are lost, at most once in logInterval.
func (e *exporter) logDropped(failed error) {
	dropped := e.dropped.Load()
	if dropped == e.logged || !e.lastLogged.IsZero() && time.Since(e.lastLogged) < logInterval {
		return
	}
	if failed != nil {
		e.logger.Warn("traces dropped", "spans", dropped-e.logged, "err", failed)
	} else {
		e.logger.Warn("traces dropped", "spans", dropped-e.logged, "err", "the queue is full", "hint", "lower otlp-sample")
	}
	e.logged, e.lastLogged = dropped, time.Now()
}

// Shutdown is called by the queue when it has sent its last batch.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	close(e.ended)
	return nil
}

// close sends what is there until ctx ends, without second tries.
func (e *exporter) close(ctx context.Context) {
	e.endPauses()
	_ = e.queue.Shutdown(ctx) // its error is that of ctx
	e.abort()
	<-e.ended
}
