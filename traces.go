// How are operations traced?
package main

import (
	"context"
	"log/slog"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/commands/tracing"
	"redlockd/configs"
)

// traces is --otlp-endpoint; without it its Tracer is nil, and nothing stands
// between the commands and what decides.
type traces struct {
	*tracing.Tracer
	farewell time.Duration // the share of drain-timeout for spans that are not sent yet
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

// counts is what INFO shows, nil if nothing is traced.
func (t *traces) counts() func() commands.TraceCounts {
	if t.Tracer == nil {
		return nil
	}
	return t.Counts
}

// close sends what is left.
func (t *traces) close() {
	ctx, cancel := context.WithTimeout(context.Background(), t.farewell)
	defer cancel()
	t.Close(ctx)
}
