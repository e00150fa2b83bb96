package kopf

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/observation"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
)

// TracingSettings are those of traces, by OpenTelemetry: a span of each attempt of a handler, and in it one of each
// request that the attempt sends to the API server; docs/traces.md has what is in them, and what never is. Kopf: none.
type TracingSettings struct {
	// Provider makes the spans, such as the TracerProvider of the SDK of OpenTelemetry. It is not shut down here. The
	// context of a handler has the span of its attempt, so that spans of your own become its children. Index functions
	// have no spans. Default: nothing is traced, and nothing is spent on it; the global provider is never taken.
	Provider trace.TracerProvider
	// Apart makes each attempt a trace of its own, with a link to the first one. Default: the attempts of a handler for
	// one change are one trace, also over restarts of the operator, as the context of the first one is kept with the
	// progress of the handler.
	Apart bool
}

// Transport gives a transport that makes a span of each request that is sent with the context of a handler. It is for
// the rest.Config of a manager that the project makes:
//
//	config.Wrap(settings.Tracing.Transport)
//
// [Main] and [Operator.Run] need nothing of it. Requests that are not a handler's are never traced: neither those of
// the framework itself, nor those of other controllers. Without a provider, it is the given transport.
func (s TracingSettings) Transport(next http.RoundTripper) http.RoundTripper {
	return tracing.Requests(s.Provider, next)
}

// wrapper is Transport, or nil where nothing is traced.
func (s TracingSettings) wrapper() func(http.RoundTripper) http.RoundTripper {
	if s.Provider == nil {
		return nil
	}
	return s.Transport
}

// check tells what is wrong with the settings.
func (s TracingSettings) check() error {
	provider := reflect.ValueOf(s.Provider)
	switch {
	case s.Provider == nil && s.Apart:
		return errors.New("Tracing.Apart: nothing is traced without a Tracing.Provider: give one, or leave it out")
	case provider.Kind() == reflect.Pointer && provider.IsNil():
		return fmt.Errorf("Tracing.Provider: it is a nil %T: leave it out to trace nothing", s.Provider)
	}
	return nil
}

// same tells whether these are the same, as far as providers can be compared.
func (s TracingSettings) same(other TracingSettings) bool {
	a, b := reflect.ValueOf(s.Provider), reflect.ValueOf(other.Provider)
	if s.Apart != other.Apart || a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	return !a.IsValid() || !a.Comparable() || s.Provider == other.Provider
}

// observe has all attempts of the handlers told: to whoever runs the operator, and by traces.
func (op *Operator) observe() {
	traces := op.settings.values.Tracing
	by := observation.Beside(op.observed, tracing.Attempts{
		Provider: traces.Provider, Operator: op.name, Apart: traces.Apart,
	}.Observer())
	for _, r := range op.registrations {
		r.handler.Observe = by
	}
	for _, h := range op.activities {
		h.Observe = by
	}
}
