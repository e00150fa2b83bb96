package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// logRestored logs once per handler that its patch had no effect: a zero value that omitempty leaves out removes the
// field, and the default of the schema restores it. It does not remember the fields: their paths contain keys of maps,
// which users choose without a limit. It does not remember sub-handlers either, as objects can choose their ids: all of
// them share the line of their handler.
func (p *pass) logRestored(ctx context.Context, attempts []*execution.Attempt) {
	if p.handling.IneffectivePatchLabels == nil {
		return
	}
	var ids, fields []string
	for _, a := range attempts {
		// Attempts without changes cannot have removed fields.
		if len(a.UnwrittenTransforms()) == 0 {
			continue
		}
		if _, isLogged := p.handling.IneffectivePatchLabels.LoadOrStore(a.Call.Handler.MetricsLabel(),
			true); !isLogged {
			ids = append(ids, a.Call.Handler.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	for _, path := range p.object.restoredFields {
		fields = append(fields, path.String())
	}
	logging.Warn(logf.FromContext(ctx), "A patch had no effect: it removes fields, and the defaults of the schema put "+
		"them back. To set a field to its zero value, its Go field must not have omitempty, or must be a pointer; "+
		"logged once", "handlers", ids, "fields", fields)
}
