// target sends spans by OTLP over HTTP: a POST of protobuf.

package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// defaultPath is where receivers listen unless they are configured otherwise.
	defaultPath = "/v1/traces"
	// postTimeout bounds one delivery.
	postTimeout = 5 * time.Second
	// maxAnswerBytes is how much of a collector's answer is read.
	maxAnswerBytes = 64 << 10
)

// retryable are answers after which the same spans may be sent again.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// target is where spans are sent.
type target struct {
	url    string
	client http.Client
}

var _ spanSender = (*target)(nil)

// newTarget reads the URL.
func newTarget(endpoint string) (*target, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, errors.New("endpoint: is not a URL") // not repeated: it may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("endpoint: %q is not a URL of the form http[s]://host:port[/path] without a password", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = defaultPath
	}
	return &target{url: u.String(), client: http.Client{
		Timeout:       postTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: postTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// send delivers spans; see spanSender.
func (t *target) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) (refused int64, again bool, err error) {
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: resourceSpans(spans)})
	if err != nil {
		return 0, false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := t.client.Do(request)
	if err != nil {
		return 0, true, err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if response.StatusCode != http.StatusOK {
		return 0, slices.Contains(retryable, response.StatusCode), fmt.Errorf("%s answered %s", t.url, response.Status)
	}
	if err != nil {
		return 0, false, errors.Join(errors.New("the collector took the spans and did not finish its answer"), err)
	}
	var answer collector.ExportTraceServiceResponse
	if proto.Unmarshal(received, &answer) != nil {
		return 0, false, nil // taken all the same
	}
	return min(max(answer.GetPartialSuccess().GetRejectedSpans(), 0), int64(len(spans))), false, nil
}

func (t *target) forget() { t.client.CloseIdleConnections() }
