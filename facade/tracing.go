package kopf

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
)

// TracingSettings configure OpenTelemetry traces, see docs/traces.md.
type TracingSettings struct {
	// Provider creates spans, such as a TracerProvider of the SDK, and is not shut down. Default: no traces.
	Provider trace.TracerProvider
	// Apart makes each attempt a trace, linked to the first one. Default: one trace for all attempts.
	Apart bool
}

// Transport traces requests with the context of a handler. It is for a manager; [Main] and [Operator.Run] do not need
// it.
//
//	config.Wrap(settings.Tracing.Transport)
func (s TracingSettings) Transport(next http.RoundTripper) http.RoundTripper {
	return tracing.Requests(s.Provider, next)
}

// wrapper returns Transport, or nil without a Provider.
func (s TracingSettings) wrapper() func(http.RoundTripper) http.RoundTripper {
	if s.Provider == nil {
		return nil
	}
	return s.Transport
}

// check returns an error for invalid settings.
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

// same reports whether the settings are equal, as far as providers can be compared.
func (s TracingSettings) same(other TracingSettings) bool {
	a, b := reflect.ValueOf(s.Provider), reflect.ValueOf(other.Provider)
	if s.Apart != other.Apart || a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	return !a.IsValid() || !a.Comparable() || s.Provider == other.Provider
}

// observe reports all attempts of the handlers to the observer of the operator and to the traces.
func (op *Operator) observe() {
	traces := op.settings.values.Tracing
	by := op.observed.Around(tracing.Attempts{
		Provider: traces.Provider, Operator: op.name, Apart: traces.Apart,
	}.Observer())
	for _, r := range op.registrations {
		r.handler.Observe = by
	}
	for _, h := range op.activities {
		h.Observe = by
	}
}
