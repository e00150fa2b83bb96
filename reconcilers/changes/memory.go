package changes

import (
	"context"
	"maps"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Memory is what is known of one object between its passes, beyond what is persisted on it. It belongs to a uid.
// The zero value is an object of which nothing is known.
type Memory struct {
	// Initial is true if the object was in the first listing and was not handled to the end since.
	Initial bool

	unwritten *outcomes // what handlers did and the API server did not take; nil if there is nothing
	uncertain bool      // whether the last write was done is not known

	missingFields string          // the fields of handlers of which it was logged that the object cannot have them
	longDelays    string          // the handlers of which it was logged that they are delayed for very long
	logged        map[string]bool // the errors of its memory that were logged, of an object that is being deleted

	records map[string]progress.Record // what could not be stored of such an object
}

// Idle is true if there is nothing to remember: the memory can be dropped.
func (m *Memory) Idle() bool {
	return !m.Initial && m.unwritten == nil && !m.uncertain && m.missingFields == "" && m.longDelays == "" &&
		m.logged == nil && m.records == nil
}

// mostLogged bounds what is kept of it: whoever can change the object can make any number of texts.
const mostLogged = 16

func (m *Memory) noteLogged(text string) {
	if m.logged == nil || len(m.logged) >= mostLogged {
		m.logged = map[string]bool{}
	}
	m.logged[text] = true
}

// keepRecords keeps the records of an object that is being deleted if they cannot be stored, or be read again: the
// deletion goes on, with its retries counted.
func (p *pass) keepRecords(handled *outcomes, failed error) {
	if !handled.cause.Deleting || failed == nil && !p.object.misread && p.memory.records == nil {
		return
	}
	if p.memory.records == nil {
		p.memory.records = map[string]progress.Record{}
	}
	maps.Copy(p.memory.records, handled.state.Records())
}

// retryUnwritten writes what a former pass could not, before anything else is done: no handler is called while its
// outcome could not be kept. It is the same write, only later, whatever has become of the object; then all is looked at
// anew. If that fails again, only a deletion that has begun since goes on: with what is left, which its handlers see.
func (p *pass) retryUnwritten(ctx context.Context, seen *observation, busy bool) (left *outcomes, _ verdict, _ error) {
	kept := p.memory.unwritten
	if kept == nil {
		return nil, goOn, nil
	}
	observed := p.object
	p.outcomes = kept
	err := p.writeAgain(ctx, kept, seen, busy)
	if err == nil {
		p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.Done()
		return nil, startOver, nil
	}
	if !seen.cause.Deleting || kept.cause.Deleting {
		return nil, stop, err
	}
	logf.FromContext(ctx).Error(err, "Failed to write former changes; calling the deletion handlers, which see them")
	observed.answer = p.object.answer
	p.object, p.outcomes = observed, nil
	return kept, goOn, nil
}

func (p *pass) writeAgain(ctx context.Context, kept *outcomes, seen *observation, busy bool) error {
	if !diff.Equal(asValue(kept.seen.stored), asValue(seen.stored)) {
		// The cause was closed: by that very write, whose answer was lost, or by another process.
		return p.writeChangesAlone(ctx, kept.attempts)
	}
	kept.seen, kept.busy = seen, busy
	return p.save(ctx, kept)
}

// writeChangesAlone writes what handlers of a closed cause wanted. What is refused is nobody's failure any more.
func (p *pass) writeChangesAlone(ctx context.Context, attempts []*execution.Attempt) error {
	for _, a := range attempts {
		err := p.writeAlone(ctx, a)
		switch {
		case contentRefused(err):
			logRefused(ctx, a, err)
		case err != nil:
			return err
		case p.object.gone:
			return nil
		}
	}
	p.memory.unwritten = nil
	return nil
}
