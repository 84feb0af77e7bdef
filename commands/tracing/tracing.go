// Tracer wraps the engine, as seen from the commands, and traces the operations that
// it chooses. The others pass untouched.

package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
)

type Options struct {
	// Endpoint is the URL of an OTLP receiver over HTTP; without a path, /v1/traces.
	Endpoint string
	// Sample is the share of operations that are traced without a request of the
	// client, 0 to 1. Those that come with a sampled traceparent always are.
	Sample  float64
	Version string // of redlockd
	// Queue is how many spans may wait for the collector; 0 means 4096, about 8 MB.
	Queue  int
	Logger *slog.Logger
}

// Tracer traces operations. A nil one traces none.
type Tracer struct {
	sample float64
	spans  trace.Tracer
	export *exporter
	leases leaseTraces
}

// maxEvents bounds the votes of one span: a wait may hold many ballots.
const maxEvents = 128

// New starts a Tracer; it is to be ended by Close.
func New(o Options) (*Tracer, error) {
	if o.Sample < 0 || o.Sample > 1 {
		return nil, fmt.Errorf("sample: %v, allowed are 0 to 1", o.Sample)
	}
	export, err := newExporter(o)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // unwanted spans are never started
		sdktrace.WithSpanProcessor(export.queue),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "redlockd"), attribute.String("service.version", o.Version))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 1024, AttributeCountLimit: 64, EventCountLimit: maxEvents,
			LinkCountLimit: 1, AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 1,
		}))
	return &Tracer{
		sample: o.Sample, export: export, leases: leaseTraces{byID: make(map[leaseID]leaseTrace)},
		spans: provider.Tracer("redlockd", trace.WithInstrumentationVersion(o.Version)),
	}, nil
}

// Counts returns the numbers of spans that the collector accepted, and those that were lost.
func (t *Tracer) Counts() commands.TraceCounts {
	return commands.TraceCounts{Sent: t.export.sent.Load(), Dropped: t.export.dropped.Load()}
}

// Close sends what is left until ctx ends, and drops the rest.
func (t *Tracer) Close(ctx context.Context) {
	if t != nil {
		t.export.close(ctx)
	}
}

// wanted reports whether an operation is traced: as its client decided, or else
// by lot.
func (t *Tracer) wanted(parent trace.SpanContext) bool {
	if parent.IsValid() {
		return parent.IsSampled()
	}
	return t.sample > 0 && rand.Float64() < t.sample
}
