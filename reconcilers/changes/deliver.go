package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// deliver writes what a former pass could not, before anything else is done: no handler is called while its outcome
// could not be kept. It is the same write, only later, whatever has become of the object; then all is looked at anew.
func (p *pass) deliver(ctx context.Context) (verdict, error) {
	kept := p.memory.unwritten
	if kept == nil {
		return goOn, nil
	}
	observed := *p
	p.cause, p.state, p.interim, p.purging = kept.cause, kept.state, kept.interim, kept.purging
	var err error
	if diff.Equal(asValue(kept.stored), asValue(p.stored)) {
		err = p.save(ctx, kept.attempts)
	} else {
		// The cause was closed: by that very write, whose answer was lost, or by another process.
		err = p.offerAll(ctx, kept.attempts)
	}
	if err == nil {
		p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.Done()
		return startOver, nil
	}
	if !observed.cause.Deleting || kept.cause.Deleting {
		return stop, err
	}
	logf.FromContext(ctx).Error(err, "Former changes cannot be written; the deletion goes on with them in mind")
	observed.written = p.written
	*p = observed
	p.attempts, p.working = kept.attempts, p.body
	for _, a := range kept.attempts {
		p.working = withChanges(p.working, a, a.Remembered())
	}
	return goOn, nil
}

// offerAll writes what handlers of a closed cause wanted. What is refused is nobody's failure any more.
func (p *pass) offerAll(ctx context.Context, attempts []*execution.Attempt) error {
	for _, a := range attempts {
		err := p.offer(ctx, a)
		switch {
		case atFault(err):
			logf.FromContext(ctx).Error(err, "The changes of a handler were refused", "handler", a.Call.Handler.ID)
		case err != nil:
			return err
		case p.gone:
			return nil
		}
	}
	p.memory.unwritten = nil
	return nil
}
