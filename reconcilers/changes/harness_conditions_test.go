package changes_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// acceptance is the state of a kind that accepts conditions until a test or a lasting refusal closes it.
type acceptance struct {
	mu       sync.Mutex
	closed   bool
	refusals []string
}

func (a *acceptance) Types(context.Context) (conditions.Types, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	types, err := conditions.NewTypes("")
	return types, err == nil && !a.closed
}

func (a *acceptance) ReportRefused(_ context.Context, why error, lasting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusals = append(a.refusals, fmt.Sprintf("lasting: %v: %v", lasting, why))
	a.closed = a.closed || lasting
}

// conditionsProcess is a process that writes conditions to its objects.
type conditionsProcess struct {
	*process
	acceptance *acceptance
}

// startReporting starts a process that writes conditions; filters, if any, restrict its reporter.
func (w *harness) startReporting(filters []handlers.Filter, registered ...*handlers.Handler) *conditionsProcess {
	w.t.Helper()
	p := &conditionsProcess{w.start(registered...), &acceptance{}}
	reporter := adapters.New(&handlers.Handler{ID: "r", Family: handlers.Condition, Filters: filters}, nil)
	p.handling.Conditions = &changes.Conditions{Reporters: []*adapters.HandlerChain{reporter}, Acceptance: p.acceptance}
	p.handling.Lens.Hide = func(body map[string]any) map[string]any {
		types, _ := conditions.NewTypes("")
		return types.WithoutConditions(body)
	}
	return p
}

// withStatus gives the object a generation and serves the status as a subresource.
func (w *harness) withStatus() {
	w.serveStatus(true)
	w.set("first", "spec", "told")
}

// condition returns a field of a condition of the object, or nil if the object does not have a condition of this type.
func (w *harness) condition(of, field string) any {
	list, _ := w.at("status", "conditions").([]any)
	for _, one := range list {
		if at(one, "type") == of {
			return at(one, field)
		}
	}
	return nil
}

// wantConditions compares the statuses of the three conditions and the observed generation.
func (w *harness) wantConditions(when string, ready, reconciling, stalled any) {
	w.t.Helper()
	got := []any{w.condition("Ready", "status"), w.condition("Reconciling", "status"), w.condition("Stalled", "status")}
	w.want(when+": Ready, Reconciling, Stalled", []any{ready, reconciling, stalled}, got)
	if ready != nil {
		w.wantAt(when, w.at("metadata", "generation"), "status", "observedGeneration")
	}
}

// wantRefusals compares the refusals reported since the last call, and reopens the kind. Each of them must be lasting
// or not as given, contain the text, and a lasting one is reported once. An empty text expects that there are none.
func (p *conditionsProcess) wantRefusals(when string, lasting bool, text string) {
	p.t.Helper()
	p.acceptance.mu.Lock()
	defer p.acceptance.mu.Unlock()
	if (len(p.acceptance.refusals) > 0) != (text != "") || lasting && len(p.acceptance.refusals) > 1 {
		p.t.Errorf("%s: refusals: %q, want %q", when, p.acceptance.refusals, text)
	}
	for _, one := range p.acceptance.refusals {
		if !strings.HasPrefix(one, fmt.Sprint("lasting: ", lasting)) || !strings.Contains(one, text) {
			p.t.Errorf("%s: refused: %q, want %q, lasting: %v", when, one, text, lasting)
		}
	}
	p.acceptance.refusals, p.acceptance.closed = nil, false
}
