package changes

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

var errConditionsNotKept = errors.New(
	"the API server took the conditions, but did not keep them: the schema does not have status.conditions",
)

// Conditions are what the objects of one kind tell of their handlers in their status.
type Conditions struct {
	// Reporters say which objects do: those that one of them matches.
	Reporters []*adapters.Handler
	// Acceptance says how the kind takes conditions.
	Acceptance Acceptance
}

// Acceptance is what is known of the conditions of one kind. Any goroutine may ask.
type Acceptance interface {
	// Types are those to be written; false if the kind has no place for conditions.
	Types(ctx context.Context) (conditions.Types, bool)
	// Refused is told that the API server has not taken those of an object. It would not take those of any other one
	// either, if that is lasting.
	Refused(ctx context.Context, why error, lasting bool)
}

// tells says whether the object of the cause is to tell of its handlers.
func (p *pass) tells(ctx context.Context, c *cause.Cause) (bool, error) {
	for _, reporter := range p.handling.Conditions.Reporters {
		if matching, err := reporter.Selected(ctx, c); matching != nil || err != nil {
			return matching != nil, filterError(err)
		}
	}
	return false, nil
}

// addConditions adds to the last write of a pass what there is to tell of its handlers. It tells whether that may
// change the status.
//
// There is no word of the engine's own about the object if nothing has happened: another operator may have the last
// one.
func (p *pass) addConditions(ctx context.Context, handled *outcomes, patch *patching.Patch) bool {
	done := handled.state.Done()
	if !handled.ended || handled.cause.Deleting && done && !handled.isKept() || p.exiting && !done {
		return false
	}
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	if !ok {
		return false
	}
	report := p.report(handled)
	if !handled.called && !p.catchesUp(types, report) {
		return false
	}
	if len(patch.Transforms) == 0 {
		if _, changed := types.Apply(p.object.body, report, p.handling.Now()); !changed {
			return false
		}
	}
	patch.Transforms = append(patch.Transforms, tellTransform(types, report, p.handling.Now()))
	return true
}

// tellTransform tells of the report on whatever the object has become.
func tellTransform(types conditions.Types, report conditions.Report, now time.Time) patching.Transform {
	return func(body map[string]any) error {
		if status, changed := types.Apply(body, report, now); changed {
			body["status"] = status
		}
		return nil
	}
}

// report is what there is to tell of the handlers of a cause.
func (p *pass) report(handled *outcomes) conditions.Report {
	report := conditions.Report{
		Generation: conditions.GenerationOf(handled.cause.Body()), Resumed: handled.cause.Reason == cause.Resume,
		Former: p.object.body,
	}
	for _, h := range handled.state.Handlers() {
		if !h.Counts() {
			continue
		}
		told := conditions.Outcome{
			ID: h.ID, Attempts: h.Retries, Succeeded: h.Success, Failed: h.Failure, Blocked: h.Blocked(),
		}
		if h.Message != nil {
			told.Message = *h.Message
		}
		if h.Awaits() {
			told.Awaited = *h.Awaited
		}
		if told.Blocked {
			told.Message = blockedBy(handled.attempts, h.ID)
		}
		report.Outcomes = append(report.Outcomes, told)
	}
	return report
}

// blockedBy is why a handler cannot be called with the object: no record has it.
func blockedBy(attempts []*execution.Attempt, id string) string {
	for _, a := range attempts {
		if a.Call.Handler.ID == id && a.Outcome.Blocked {
			return a.Outcome.Err.Error()
		}
	}
	return ""
}

// catchesUp tells whether the object says less than it could, though no handler was called: nothing, or something about
// another generation, or that handlers are at work which are not. What is said so is said once in the life of the
// process, until handlers have been called: should somebody undo it, that is their matter.
func (p *pass) catchesUp(types conditions.Types, report conditions.Report) bool {
	told, idle := types.Told(p.object.body), true
	for _, o := range report.Outcomes {
		idle = idle && (o.Succeeded || o.Failed)
	}
	current := told.Generation == 0 || told.Generation == report.Generation
	return (!told.Ready || !current || told.Reconciling && idle) && p.memory.told != report.Generation+1
}

// tellWithoutNews has an object catch up which no handler was called for.
func (p *pass) tellWithoutNews(ctx context.Context, c *cause.Cause) error {
	if p.object.gone || p.object.released || c.Deleting {
		return nil
	}
	matches, err := p.tells(ctx, c)
	if err != nil || !matches {
		return err
	}
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	report := conditions.Report{Generation: conditions.GenerationOf(c.Body())}
	if !ok || !p.catchesUp(types, report) {
		return nil
	}
	if err := p.sendConditions(ctx, types, report); err != nil {
		return err
	}
	p.memory.told = report.Generation + 1
	return nil
}

// tellAlone writes conditions that were refused together with what handlers have set.
func (p *pass) tellAlone(ctx context.Context, handled *outcomes) error {
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	if !ok || p.object.gone || p.object.released {
		return nil
	}
	return p.sendConditions(ctx, types, p.report(handled))
}

func (p *pass) sendConditions(ctx context.Context, types conditions.Types, report conditions.Report) error {
	err := p.object.transform(ctx, tellTransform(types, report, p.handling.Now()))
	switch {
	case patching.ContentRefused(err):
		p.handling.Conditions.Acceptance.Refused(ctx, err, false)
		return nil
	case err != nil || p.object.gone:
		return err
	case p.object.refusal != nil:
		lasting := apierrors.IsForbidden(p.object.refusal) || apierrors.IsNotFound(p.object.refusal)
		p.handling.Conditions.Acceptance.Refused(ctx, p.object.refusal, lasting)
		return nil
	}
	p.checkTold(ctx)
	return nil
}

// noteTold is for conditions that were written with the outcomes of handlers.
func (p *pass) noteTold(ctx context.Context, handled *outcomes) {
	if p.memory.told = 0; !handled.called {
		p.memory.told = conditions.GenerationOf(handled.cause.Body()) + 1
	}
	p.checkTold(ctx)
}

// checkTold tells whether the object has the conditions: a schema may have dropped them without a word.
func (p *pass) checkTold(ctx context.Context) {
	acceptance := p.handling.Conditions.Acceptance
	types, ok := acceptance.Types(ctx)
	if !ok || p.object.gone || p.object.released || types.Told(p.object.body).Ready {
		return
	}
	if err := conditions.Readable(p.object.body); err != nil {
		acceptance.Refused(ctx, err, false)
		return
	}
	acceptance.Refused(ctx, errConditionsNotKept, true)
}
