package changes

import (
	"context"
	"slices"
	"strings"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// missing says which fields of handlers the object cannot have, as there is something else than a mapping on the way:
// once, until that changes. Only the handlers of these fields are concerned.
func (p *pass) missing(ctx context.Context) {
	fields := p.Lens.Unreachable(p.body)
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.String())
	}
	told := strings.Join(names, ", ")
	if told == p.memory.unreachable {
		return
	}
	p.memory.unreachable = told
	if told != "" {
		logf.FromContext(ctx).Info("The object does not have the field of a handler: something else than a mapping "+
			"is on the way. The others go on",
			"fields", names, "handlers", p.handlersOf(fields))
	}
}

// handlersOf are the ids of the handlers of changes that have one of the fields.
func (p *pass) handlersOf(fields []diff.Path) []string {
	ids := []string{}
	for _, h := range p.Handlers {
		if h.Field != nil && slices.ContainsFunc(
			fields, func(field diff.Path) bool { return slices.Equal(field, h.Field) },
		) {
			ids = append(ids, h.ID)
		}
	}
	return ids
}
