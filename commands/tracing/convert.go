// Conversion of spans to OTLP.

package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// resourceSpans puts spans of one Tracer together, at least one.
func resourceSpans(spans []sdktrace.ReadOnlySpan) []*trace.ResourceSpans {
	scope := spans[0].InstrumentationScope()
	scoped := &trace.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope.Name, Version: scope.Version}}
	for _, s := range spans {
		scoped.Spans = append(scoped.Spans, spanOf(s))
	}
	return []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: attributesOf(spans[0].Resource().Attributes())},
		ScopeSpans: []*trace.ScopeSpans{scoped},
	}}
}

func spanOf(s sdktrace.ReadOnlySpan) *trace.Span {
	id, traceID := s.SpanContext().SpanID(), s.SpanContext().TraceID()
	span := &trace.Span{
		TraceId: traceID[:], SpanId: id[:], Flags: uint32(s.SpanContext().TraceFlags()),
		Name: s.Name(), Kind: trace.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes:             attributesOf(s.Attributes()),
		DroppedAttributesCount: uint32(s.DroppedAttributes()), DroppedEventsCount: uint32(s.DroppedEvents()),
		Status: &trace.Status{},
	}
	if s.Parent().IsValid() {
		parent := s.Parent().SpanID()
		span.ParentSpanId = parent[:]
	}
	if status := s.Status(); status.Code == codes.Error {
		span.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: valid(status.Description)}
	}
	for _, e := range s.Events() {
		span.Events = append(span.Events, &trace.Span_Event{
			TimeUnixNano: uint64(e.Time.UnixNano()), Name: e.Name, Attributes: attributesOf(e.Attributes),
		})
	}
	return span
}

func attributesOf(list []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(list))
	for _, a := range list {
		out = append(out, &common.KeyValue{Key: string(a.Key), Value: valueOf(a.Value)})
	}
	return out
}

func valueOf(v attribute.Value) *common.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRINGSLICE:
		list := &common.ArrayValue{}
		for _, text := range v.AsStringSlice() {
			list.Values = append(list.Values, textValue(text))
		}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return textValue(v.String())
}

func textValue(text string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(text)}}
}

// valid is a text that protobuf takes: keys may hold any byte.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
