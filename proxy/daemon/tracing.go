package daemon

// Spans of operations, exported to --otlp-endpoint.

import (
	"context"
	"log/slog"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/commands/tracing"
	"redlockd/configs"
)

// traces is --otlp-endpoint; without it Tracer is nil, and commands call the
// locker directly.
type traces struct {
	*tracing.Tracer
	closeTimeout time.Duration // share of --drain-timeout for spans not yet sent
}

func newTraces(config configs.Config, logger *slog.Logger) (*traces, error) {
	if config.OTLPEndpoint == "" {
		return &traces{}, nil
	}
	tracer, err := tracing.New(tracing.Options{
		Endpoint: config.OTLPEndpoint, Sample: config.OTLPSample, Version: cli.Version(), Logger: logger,
	})
	if err != nil {
		return nil, &configs.FieldError{Field: "otlp-endpoint", Problem: err.Error()}
	}
	return &traces{tracer, min(time.Second, config.DrainTimeout/4)}, nil
}

// counts are the figures in INFO; nil if nothing is traced.
func (t *traces) counts() func() commands.TraceCounts {
	if t.Tracer == nil {
		return nil
	}
	return t.Counts
}

// close sends the remaining spans.
func (t *traces) close() {
	ctx, cancel := context.WithTimeout(context.Background(), t.closeTimeout)
	defer cancel()
	t.Close(ctx)
}
