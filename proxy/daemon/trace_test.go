package daemon

// Tests of --otlp-endpoint with the whole program.

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const sampledMeta = "META traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestProcess_SendsTracedLocksToACollector(t *testing.T) {
	t.Parallel()
	var spans atomic.Int64
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans.Add(int64(len(ss.Spans)))
			}
		}
	}))
	defer there.Close()
	_, address := startProcess(t, "--otlp-endpoint", there.URL, "--otlp-sample", "0")
	c := dial(t, address)
	c.lock(t, "plain") // no client requested its trace
	if reply := c.ask(t, "DLOCK traced 30000 %s", sampledMeta); reply != "*3" {
		t.Fatal(reply)
	}
	c.lines(t, 4)
	eventually(t, "the collector has the span", func() bool { return c.info(t, "stats")["traces_sent"] == "1" },
		func() string { return c.info(t, "stats")["traces_sent"] })
	if n := spans.Load(); n != 1 {
		t.Errorf("%d spans came", n)
	}
}

// A collector that never answers has a second of the shutdown and no more.
func TestProcess_StopsThoughItsCollectorHangs(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	process, address := startProcess(t, "--otlp-endpoint", "http://"+hangs.Addr().String(), "--drain-timeout", "1m")
	c := dial(t, address)
	token := c.lock(t, "k")
	if reply := c.ask(t, "DLOCK k 60000 TOKEN %s %s", token, sampledMeta); reply != "*3" {
		t.Fatal(reply)
	}
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil { // a process that does not end in time is killed, see startProcess
		t.Error(err)
	}
}

func TestInfo_HasNoTracesUnlessTheyAreOn(t *testing.T) {
	_, address := startProcess(t)
	stats := dial(t, address).info(t, "stats")
	if _, on := stats["traces_sent"]; on || stats["total_commands_processed"] == "" {
		t.Error(stats)
	}
}
