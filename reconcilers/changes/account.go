package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// account selects the handlers of the cause, and takes up their progress where it was left.
func (p *pass) account(ctx context.Context) (verdict, error) {
	selected, err := handlers.Select(ctx, p.Handlers, p.cause)
	if err != nil {
		return stop, filtering(err)
	}
	ids := make([]string, 0, len(selected))
	for _, handler := range selected {
		ids = append(ids, handler.ID)
	}
	p.selected = selected
	p.state, err = execution.Restore(p.read, p.owned(), ids, string(p.cause.Reason), p.now())
	if err != nil {
		return stop, &BlockedError{Err: err}
	}
	p.purging, p.room, p.state.Compact = false, nil, p.CompactSubs
	if p.state.Superseding() {
		p.supersede(ctx)
	}
	found, err := p.success(p.state)
	if err != nil {
		return stop, &BlockedError{Err: err}
	}
	if found == nil {
		p.interim = nil
	}
	return goOn, nil
}

// supersede moves the handlers that both causes have to the new one; the rest of the former cause is dropped.
func (p *pass) supersede(ctx context.Context) {
	present, extras := p.state.Counts()
	log := logf.FromContext(ctx)
	for former, counts := range extras {
		log.Info("A former cause is superseded", "former", storage.Excerpt(former), "reason", p.cause.Reason,
			"succeeded", counts.Success,
			"failed", counts.Failure, "unfinished", counts.Running, "shared", present.Running)
	}
	p.purging = p.state.Repurpose(string(p.cause.Reason))
}
