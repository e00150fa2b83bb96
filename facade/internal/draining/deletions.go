package draining

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// DefaultDeletionTimeout is how long the delete handlers of a drain may take by default.
const DefaultDeletionTimeout = 5 * time.Minute

// finishDeletions runs the operator for the objects that are being deleted, until none of them has the finalizer or the
// timeout has passed. The rest of the drain lists the objects that are left.
func (r *run) finishDeletions(ctx context.Context) error {
	if r.RunDeletions == nil || r.Check {
		return nil
	}
	looking := *r
	looking.results = newResults() // the numbers of a drain are those of its last list
	kinds := looking.resolveKinds(ctx)
	left := looking.countDeletions(ctx, kinds)
	if left == 0 {
		return nil // the startup handlers are not called either
	}
	log, ended := logf.FromContext(ctx), make(chan error, 1)
	running, stop := context.WithTimeout(ctx, r.DeletionTimeout)
	defer stop()
	go func() { ended <- r.RunDeletions(running) }()
	for noted := 0; left > 0; left = looking.countDeletions(ctx, kinds) {
		if left != noted {
			log.Info("Waiting for the delete handlers", "objects", left, "timeout", r.DeletionTimeout.String())
			noted = left
		}
		select {
		case err := <-ended:
			if ctx.Err() == nil && running.Err() != nil {
				r.note("The delete handlers have not finished within %s", r.DeletionTimeout)
			}
			return err
		case <-time.After(pollInterval):
		}
	}
	stop()
	return <-ended
}

// countDeletions returns the number of objects that are being deleted and have the finalizer.
func (r *run) countDeletions(ctx context.Context, kinds []*resolvedKind) int {
	var left atomic.Int64
	for _, kind := range kinds {
		// The drain itself reports kinds that cannot be listed.
		_ = r.drainList(ctx, kind.Resource, "", func(body map[string]any) (traces, error) {
			if isDeleting(body) && slices.Contains(finalizersOf(body), r.Finalizer) {
				left.Add(1)
			}
			return traces{}, nil
		})
	}
	return int(left.Load())
}
