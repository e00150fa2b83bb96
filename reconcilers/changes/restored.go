package changes

import (
	"context"
	"slices"
	"strings"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// logRestored logs once for the handlers that a patch of theirs had no effect: a zero value that omitempty leaves out
// removes the field, and the default of the schema puts it back.
func (p *pass) logRestored(ctx context.Context, attempts []*execution.Attempt) {
	if p.handling.Restored == nil {
		return
	}
	var ids, fields []string
	for _, a := range attempts {
		if id := a.Call.Handler.ID; len(a.Remembered()) > 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, path := range p.object.restored {
		fields = append(fields, path.String())
	}
	key := strings.Join(ids, " ") + ": " + strings.Join(fields, " ")
	if _, isLogged := p.handling.Restored.LoadOrStore(key, true); isLogged || len(ids) == 0 {
		return
	}
	logging.Warn(logf.FromContext(ctx), "A patch had no effect: it removes fields, and the defaults of the schema put "+
		"them back. To set a field to its zero value, its Go field must not have omitempty, or must be a pointer; "+
		"logged once", "handlers", ids, "fields", fields)
}
