package changes

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// errConditionsNotKept explains conditions that are missing after a successful write.
var errConditionsNotKept = errors.New(
	"the API server took the conditions, but did not keep them: the schema does not have status.conditions",
)

// Conditions configures the conditions in the status of the objects of one kind.
type Conditions struct {
	// Reporters select the objects that get conditions: those that match one of them.
	Reporters []*adapters.HandlerChain
	// Acceptance tracks which conditions the kind accepts.
	Acceptance Acceptance
}

// Acceptance collects the API server's reactions to the conditions of one kind. It can be used concurrently.
type Acceptance interface {
	// Types returns the types of conditions to write; false if the kind does not have a place for conditions.
	Types(ctx context.Context) (conditions.Types, bool)
	// ReportRefused reports that the API server did not accept the conditions of an object. If lasting is true, it
	// would not accept those of other objects of the kind either.
	ReportRefused(ctx context.Context, why error, lasting bool)
}

// getsConditions reports whether the object of the cause gets conditions.
func (p *pass) getsConditions(ctx context.Context, c *cause.Cause) (bool, error) {
	for _, reporter := range p.handling.Conditions.Reporters {
		if matching, err := reporter.SelectFor(ctx, c); matching != nil || err != nil {
			return matching != nil, filterError(err)
		}
	}
	return false, nil
}

// addConditions adds the conditions to the last write of a pass. It returns true if the patch can change them.
//
// If no handler was called, the conditions usually stay as they are: another operator can have set them.
func (p *pass) addConditions(ctx context.Context, handled *outcomes, patch *patching.Patch) bool {
	// Only the last write of a pass sets conditions; not if the object disappears with it, or if the operator exits
	// before the handlers are finished.
	done := handled.state.AllFinished()
	if !handled.callsEnded || handled.cause.Deleting && done && !handled.isKept() || p.exiting && !done {
		return false
	}
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	if !ok {
		return false
	}
	report := p.conditionsReport(handled)
	if !handled.called && !p.hasOutdatedConditions(types, report) {
		return false
	}
	// Without other transformations, the outcome is known now: an unchanged status saves the write.
	if len(patch.Transforms) == 0 {
		if _, changed := types.Apply(p.object.body, report, p.handling.Now()); !changed {
			return false
		}
	}
	patch.Transforms = append(patch.Transforms, conditionsTransform(types, report, p.handling.Now()))
	return true
}

// conditionsTransform returns a transformation that sets the conditions on the object of the write, which can be newer.
func conditionsTransform(types conditions.Types, report conditions.Report, now time.Time) patching.Transform {
	return func(body map[string]any) error {
		if status, changed := types.Apply(body, report, now); changed {
			body["status"] = status
		}
		return nil
	}
}

// conditionsReport returns the report of the handlers of a cause, from which conditions are made.
func (p *pass) conditionsReport(handled *outcomes) conditions.Report {
	report := conditions.Report{
		Generation: conditions.GenerationOf(handled.cause.Body()), Resumed: handled.cause.Reason == cause.Resume,
		Former: p.object.body,
	}
	for _, h := range handled.state.AllStates() {
		// Sub-handlers are reported through their parents.
		if !h.IsCounted() {
			continue
		}
		told := conditions.HandlerProgress{
			ID: h.ID, Attempts: h.Retries, Succeeded: h.Success, Failed: h.Failure, Blocked: h.IsBlocked(),
		}
		if h.Message != nil {
			told.Message = *h.Message
		}
		if h.AwaitsChild() {
			told.Awaited = *h.Awaited
		}
		// A blocked attempt is not recorded, so only the attempt has the reason.
		if told.Blocked {
			told.Message = blockedBy(handled.attempts, h.ID)
		}
		report.Outcomes = append(report.Outcomes, told)
	}
	return report
}

// blockedBy returns the reason why a handler cannot be called with the present object. Records do not have it.
func blockedBy(attempts []*execution.Attempt, id string) string {
	for _, a := range attempts {
		if a.Call.Handler.ID == id && a.Outcome.Blocked {
			return a.Outcome.Err.Error()
		}
	}
	return ""
}

// hasOutdatedConditions reports whether the conditions on the object are outdated although no handler was called: they
// are missing, are for another generation, report running handlers while none runs, or a pause that is over. It returns
// true once per generation in the life of the process, until handlers are called: another client that removes the
// conditions is not fought.
func (p *pass) hasOutdatedConditions(types conditions.Types, report conditions.Report) bool {
	told, idle := types.ReadReported(p.object.body), true
	for _, o := range report.Outcomes {
		idle = idle && (o.Succeeded || o.Failed)
	}
	// Conditions without a generation count as current.
	current := told.Generation == 0 || told.Generation == report.Generation
	return (!told.HasReady || !current || told.IsReconciling && idle || told.IsPaused) &&
		p.memory.conditionsGeneration != report.Generation+1
}

// updateOutdatedConditions updates outdated conditions of an object for which no handler was called.
func (p *pass) updateOutdatedConditions(ctx context.Context, c *cause.Cause) error {
	if p.object.gone || p.object.released || c.Deleting {
		return nil
	}
	matches, err := p.getsConditions(ctx, c)
	if err != nil || !matches {
		return err
	}
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	// No handler is involved, so the report does not have outcomes.
	report := conditions.Report{Generation: conditions.GenerationOf(c.Body())}
	if !ok || !p.hasOutdatedConditions(types, report) {
		return nil
	}
	if err := p.sendConditions(ctx, types, report); err != nil {
		return err
	}
	p.memory.conditionsGeneration = report.Generation + 1 // plus one, as zero means that nothing was written
	return nil
}

// writeConditionsAlone writes conditions that were refused together with the changes of handlers.
func (p *pass) writeConditionsAlone(ctx context.Context, handled *outcomes) error {
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	if !ok || p.object.gone || p.object.released {
		return nil
	}
	return p.sendConditions(ctx, types, p.conditionsReport(handled))
}

// sendConditions writes the conditions alone. A refusal is reported to the Acceptance and not returned: handlers must
// not fail because of conditions.
func (p *pass) sendConditions(ctx context.Context, types conditions.Types, report conditions.Report) error {
	err := p.object.sendTransform(ctx, conditionsTransform(types, report, p.handling.Now()))
	switch {
	// The content was refused because of this object; others can be accepted.
	case patching.IsContentRefused(err):
		p.handling.Conditions.Acceptance.ReportRefused(ctx, err, false)
		return nil
	case err != nil || p.object.gone:
		return err
	case p.object.statusRefusal != nil:
		// Missing permissions and a missing subresource concern all objects of the kind.
		lasting := apierrors.IsForbidden(p.object.statusRefusal) || apierrors.IsNotFound(p.object.statusRefusal)
		p.handling.Conditions.Acceptance.ReportRefused(ctx, p.object.statusRefusal, lasting)
		return nil
	}
	p.checkConditionsKept(ctx)
	return nil
}

// noteConditionsWritten records that conditions were written with the outcomes of handlers.
func (p *pass) noteConditionsWritten(ctx context.Context, handled *outcomes) {
	// A call ends the restriction to one update per generation.
	if p.memory.conditionsGeneration = 0; !handled.called {
		p.memory.conditionsGeneration = conditions.GenerationOf(handled.cause.Body()) + 1
	}
	p.checkConditionsKept(ctx)
}

// checkConditionsKept reports to the Acceptance if the object does not have the conditions after the write: the API
// server silently drops fields that the schema does not have.
func (p *pass) checkConditionsKept(ctx context.Context) {
	acceptance := p.handling.Conditions.Acceptance
	types, ok := acceptance.Types(ctx)
	if !ok || p.object.gone || p.object.released || types.ReadReported(p.object.body).HasReady {
		return
	}
	// Malformed conditions of another client are a problem of this object only.
	if err := conditions.CheckStatus(p.object.body); err != nil {
		acceptance.ReportRefused(ctx, err, false)
		return
	}
	acceptance.ReportRefused(ctx, errConditionsNotKept, true)
}
