// Package tracing sends spans of operations to an OpenTelemetry collector: one for each
// operation, with the votes of all masters.
//
// Spans leave by a bounded queue: a collector that is slow or away costs spans and
// nothing else. Spans contain keys. They never contain tokens, values or META.
//
// Reading order:
//   - tracing.go: a Tracer; span.go: the span of one operation;
//   - operations.go: the traced operations of package commands;
//   - parent.go: which trace an operation belongs to;
//   - export.go, convert.go: the way to the collector.
package tracing
