package planning

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// ChangePlan is what an operator would do on a cluster when it starts.
type ChangePlan struct {
	Operator string `json:"operator"`
	// Warnings are facts that need attention before the start.
	Warnings []string `json:"warnings,omitempty"`
	// Handlers sums up the objects of each handler, in the order of registration.
	Handlers []HandlerSummary `json:"handlers"`
	// Objects are those with a handler to call or to start, with leftovers, or with an error.
	Objects []PlannedObject `json:"objects"`
	// Untouched is the number of the other objects.
	Untouched int `json:"untouched"`
}

// HandlerSummary has the numbers of objects for which a handler would be called or started.
type HandlerSummary struct {
	Kind    string `json:"kind"`
	Handler string `json:"handler"`
	// On is the verb of the registration: create, update, delete, resume, field, event, daemon, timer.
	On string `json:"on"`
	// Creations, Updates, Deletions and Resumes are the numbers by cause.
	Creations int `json:"creations"`
	Updates   int `json:"updates"`
	Deletions int `json:"deletions"`
	Resumes   int `json:"resumes"`
	// Waiting is the number of objects whose next attempt is later.
	Waiting int `json:"waiting"`
	// Starts is the number of objects for which a daemon or timer starts, or which an event handler gets.
	Starts int `json:"starts"`
}

// The states of a handler for an object.
const (
	// Called handlers are called for the first time, and Retried ones after earlier attempts.
	Called  = "called"
	Retried = "retried"
	// Waiting handlers are called later, Finished ones were called for this change already.
	Waiting  = "waiting"
	Finished = "finished"
)

// PlannedObject is one object and what would be done for it.
type PlannedObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Reason is that of the cause: create, update, delete, resume, noop or free. Why is the reason in words.
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"`
	// Dropped says which unfinished change would not be continued.
	Dropped string `json:"dropped,omitempty"`
	// Handlers are those that are selected for the cause, and Skipped the others, with the reasons.
	Handlers []PlannedHandler         `json:"handlers,omitempty"`
	Skipped  []journal.HandlerVerdict `json:"skipped,omitempty"`
	// Starting are the ids of the daemons and timers that start, Notified those of the event handlers.
	Starting []string `json:"starting,omitempty"`
	Notified []string `json:"notified,omitempty"`
	// Leftovers are records and sets of children of handlers that the operator does not have.
	Leftovers []string `json:"leftovers,omitempty"`
	// Error says why the object would not be handled.
	Error string `json:"error,omitempty"`
}

// PlannedHandler is a selected handler with its state.
type PlannedHandler struct {
	Handler string `json:"handler"`
	On      string `json:"on"`
	// State is Called, Retried, Waiting or Finished.
	State    string `json:"state"`
	Attempts int    `json:"attempts,omitempty"`
}

// maker collects a report.
type maker struct {
	options  reconcilers.Options
	report   ChangePlan
	prefixes map[string]int // the objects to be created again, by the other prefix that they have memory of
}

// Make predicts the work of an operator with these options. The context carries the logger for index functions.
func Make(ctx context.Context, o reconcilers.Options, source reconcilers.PreviewSource) (*ChangePlan, error) {
	m := &maker{
		options: o, report: ChangePlan{Operator: o.Name, Handlers: []HandlerSummary{}, Objects: []PlannedObject{}},
		prefixes: map[string]int{},
	}
	unserved, err := o.PreviewObjects(ctx, source, m)
	if err != nil {
		return nil, err
	}
	m.addWarnings(unserved)
	return &m.report, nil
}

// HasChanges reports whether creations, updates or deletions would be handled, now or at a later attempt.
func (r *ChangePlan) HasChanges() bool {
	return slices.ContainsFunc(r.Handlers, func(h HandlerSummary) bool {
		return h.Creations+h.Updates+h.Deletions+h.Waiting > 0
	})
}

// VisitKind adds a line to the summary for each handler of the kind that can be called.
func (m *maker) VisitKind(of reconcilers.PreviewedKind) {
	for _, h := range slices.Concat(of.Changing, of.Background, of.Watching) {
		m.lineOf(of, h)
	}
}

// lineOf returns the line of a handler in the summary.
func (m *maker) lineOf(of reconcilers.PreviewedKind, h *handlers.Handler) *HandlerSummary {
	line := HandlerSummary{Kind: of.Resource.GroupResource().String(), Handler: h.ID, On: h.VerbName()}
	at := slices.IndexFunc(m.report.Handlers, func(s HandlerSummary) bool {
		return s.Kind == line.Kind && s.Handler == line.Handler && s.On == line.On
	})
	if at < 0 {
		at = len(m.report.Handlers)
		m.report.Handlers = append(m.report.Handlers, line)
	}
	return &m.report.Handlers[at]
}

// VisitObject adds what would be done for one object.
func (m *maker) VisitObject(of reconcilers.PreviewedKind, body map[string]any, found reconcilers.ObjectPreview) {
	object := unstructured.Unstructured{Object: body}
	one := PlannedObject{
		Kind: of.Resource.GroupResource().String(), Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: string(object.GetUID()), Dropped: found.Evaluation.DroppedReason, Leftovers: m.findLeftovers(of, body),
	}
	if found.Err != nil {
		one.Error = found.Err.Error()
	}
	// The handlers of an object that is not handled are not known.
	if c := found.Cause; c != nil && found.Err == nil {
		one.Reason = string(c.Reason)
		one.addHandlers(m, of, found)
		if len(one.Handlers) > 0 {
			one.Why = m.whyHandled(body, c, found.Evaluation)
		}
	}
	if len(one.Handlers)+len(one.Starting)+len(one.Notified)+len(one.Leftovers) == 0 && one.Error == "" {
		m.report.Untouched++
		return
	}
	m.report.Objects = append(m.report.Objects, one)
}

// addHandlers adds the handlers to the object, and counts them in the summary.
func (o *PlannedObject) addHandlers(m *maker, of reconcilers.PreviewedKind, found reconcilers.ObjectPreview) {
	for _, h := range found.Handlers {
		one := PlannedHandler{Handler: h.Handler.ID, On: h.Handler.VerbName(), Attempts: h.Attempts, State: stateOf(h)}
		o.Handlers = append(o.Handlers, one)
		m.lineOf(of, h.Handler).count(one.State, found.Cause.Reason)
	}
	for _, v := range found.Evaluation.Verdicts {
		selected := func(h PlannedHandler) bool { return h.Handler == v.Handler && h.On == v.Purpose }
		if len(o.Handlers) > 0 && v.Reason != "" && !slices.ContainsFunc(o.Handlers, selected) {
			o.Skipped = append(o.Skipped, v)
		}
	}
	for _, h := range found.Starting {
		o.Starting = append(o.Starting, h.ID)
		m.lineOf(of, h).Starts++
	}
	for _, h := range found.Notified {
		o.Notified = append(o.Notified, h.ID)
		m.lineOf(of, h).Starts++
	}
}

// count counts an object for the handler.
func (s *HandlerSummary) count(state string, reason cause.Reason) {
	switch {
	case state == Finished:
	case state == Waiting:
		s.Waiting++
	case reason == cause.Create:
		s.Creations++
	case reason == cause.Update:
		s.Updates++
	case reason == cause.Delete:
		s.Deletions++
	case reason == cause.Resume:
		s.Resumes++
	}
}

// stateOf returns the state of a selected handler.
func stateOf(h changes.HandlerPreview) string {
	switch {
	case h.Finished:
		return Finished
	case !h.Called:
		return Waiting
	case h.Attempts > 0:
		return Retried
	default:
		return Called
	}
}
