package changes

import (
	"context"
	"slices"
	"strings"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// observation is what a round makes of the object, by comparison with what is remembered of it.
type observation struct {
	cause        *cause.Cause
	stored       diffbase.Essence // what was handled last, as it stands on the object
	interim      diffbase.Essence // what the first successful handler of the cause saw; nil if none has succeeded
	staleInterim bool             // the object has interim memory, of another cause
	former       *execution.State // all records of our handlers
}

// observe compares the object with what is remembered of it, and so finds the cause. All memory is read here, ahead of
// any write: an object whose memory is malformed is not touched.
func (p *pass) observe(ctx context.Context) (*observation, error) {
	o, h := &p.object, p.handling
	if err := o.tolerate(ctx, o.separateForeignMemory()); err != nil {
		return nil, &BlockedError{Err: err}
	}
	now, stored, interim, err := o.essences(ctx)
	if err != nil {
		return nil, &BlockedError{Err: err}
	}
	seen := &observation{stored: stored}
	if seen.former, err = execution.Restore(o.recordReader(ctx), h.IDs(), nil, "", h.now()); err != nil {
		return nil, &BlockedError{Err: err}
	}
	seen.interim, _ = h.Lens.Redaction.Recall(o.body, interim, now)
	if err := o.dropStaleInterim(ctx, seen); err != nil {
		return nil, &BlockedError{Err: err}
	}
	p.logMissingFields(ctx)
	then, veiled := h.Lens.Redaction.Recall(o.body, stored, now)
	seen.cause = cause.Detect(cause.Observation{
		Body: o.body, Finalizer: h.Finalizer, Old: then, New: now, Veiled: veiled, Initial: p.memory.Initial,
	})
	return seen, nil
}

// essences are the present one, the one that was handled last, and the interim one, the latter two as they are stored.
// What cannot be read is nil if the object is being deleted.
func (o *object) essences(ctx context.Context) (now, stored, interim diffbase.Essence, err error) {
	lens := o.handling.Lens
	now, err = lens.New(o.own)
	if err := o.tolerate(ctx, err); err != nil {
		return nil, nil, nil, err
	}
	stored, err = lens.Old(o.own, lens.Diffbase)
	if err := o.tolerate(ctx, err); err != nil {
		return nil, nil, nil, err
	}
	interim, err = lens.Old(o.own, o.handling.Interim)
	return now, stored, interim, o.tolerate(ctx, err)
}

// logMissingFields logs which fields of handlers the object cannot have, as there is something else than a mapping on
// the way: once, until that changes. Only the handlers of these fields are concerned.
func (p *pass) logMissingFields(ctx context.Context) {
	fields := p.handling.Lens.Unreachable(p.object.body)
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.String())
	}
	said := strings.Join(names, ", ")
	if said == p.memory.missingFields {
		return
	}
	p.memory.missingFields = said
	if said != "" {
		logf.FromContext(ctx).Info("The object cannot have the field of a handler, as a value on its path is not a "+
			"mapping; calling the other handlers", "fields", names, "handlers", p.handlersOf(fields))
	}
}

// handlersOf are the ids of the handlers of changes that have one of the fields.
func (p *pass) handlersOf(fields []diff.Path) []string {
	ids := []string{}
	for _, h := range p.handling.Handlers {
		own := func(field diff.Path) bool { return slices.Equal(field, h.Description.Field) }
		if h.Description.Field != nil && slices.ContainsFunc(fields, own) {
			ids = append(ids, h.Description.ID)
		}
	}
	return ids
}
