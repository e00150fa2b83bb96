package execution

import (
	"context"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// pickByFunction calls the user's function, which must pick at least one handler: otherwise the object would be due
// again immediately, in an endless loop.
func pickByFunction(
	ctx context.Context, pick func(context.Context, []handlers.DueHandler) []handlers.DueHandler, due []*HandlerState,
) (picked []*HandlerState, err error) {
	// The function gets copies, so that it cannot modify the states.
	given := make([]handlers.DueHandler, 0, len(due))
	states := make(map[string]*HandlerState, len(due))
	for _, e := range due {
		given = append(given, handlers.DueHandler{ID: e.ID, Retry: e.Retries, Started: e.Started})
		states[e.ID] = e
	}
	var chosen []handlers.DueHandler
	if err := panics.Contain(func() error { chosen = pick(ctx, given); return nil }); err != nil {
		return nil, fmt.Errorf("picking handlers by the lifecycle: %w", err)
	}
	for _, one := range chosen {
		e := states[one.ID]
		switch {
		case e == nil:
			return nil, fmt.Errorf("picking handlers by the lifecycle: it picked %q, which is not due", one.ID)
		case slices.Contains(picked, e):
			return nil, fmt.Errorf("picking handlers by the lifecycle: it picked %q twice", one.ID)
		}
		picked = append(picked, e)
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("picking handlers by the lifecycle: it picked none of the %d that are due", len(due))
	}
	return picked, nil
}
