package journaltest

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// NewHandler returns a handler with this purpose: create, update, delete, resume, event, daemon, timer or sub-handler.
func NewHandler(id, on string) *handlers.Handler {
	// A fixed location keeps the expected texts of tests stable.
	h := &handlers.Handler{ID: id, Family: handlers.Changing, Location: "main.go:12"}
	switch on {
	case "event":
		h.Family = handlers.Watching
	case "daemon", "timer":
		h.Family, h.Background = handlers.Background, &handlers.BackgroundOptions{Daemon: on == "daemon"}
	case "sub-handler":
		// A sub-handler is recognized by its root.
		h.Root = "root"
	case "resume":
		h.Initial = true
	default:
		h.Reason = cause.Reason(on)
	}
	return h
}

// WithRequirement adds a filter to the handler, with the words of its registration, and returns the handler.
func WithRequirement(h *handlers.Handler, words string) *handlers.Handler {
	h.FilterDescriptions.Filters = append(h.FilterDescriptions.Filters, handlers.Criterion{Text: words})
	return h
}

// NamespacedResource returns a namespaced kind of version v1, such as Widget in the group example.org.
func NamespacedResource(group, kind, plural string) discovery.Resource {
	return discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural,
		Namespaced: true,
	}
}

// ServedKind returns the description of the kind with these handlers, served in all namespaces.
func ServedKind(j *journal.Journal, r discovery.Resource, own ...*handlers.Handler) journal.ServedKind {
	served := j.ForKind(schema.GroupKind{Group: r.Group, Kind: r.Kind}, nil).ServedKind(r, own)
	// The engine fills in the namespaces; here it is the whole cluster.
	served.Namespaces = []string{""}
	return served
}

// Story records a sequence of entries for one object. Its methods return the Story, so that calls can be chained.
type Story struct{ object journal.ObjectJournal }

// StartStory starts the story of an object. Its uid is derived from its name.
func StartStory(j *journal.Journal, r discovery.Resource, namespace, name string) Story {
	kind := j.ForKind(schema.GroupKind{Group: r.Group, Kind: r.Kind}, nil)
	return Story{kind.ForObject(types.NamespacedName{Namespace: namespace, Name: name}, types.UID("uid-"+name))}
}

// RecordEvent records an event of the watch with this type.
func (s Story) RecordEvent(eventType string) Story {
	s.object.RecordEvent(eventType, "7")
	return s
}

// EvaluationVerdict is the decision of a look about a handler.
type EvaluationVerdict struct {
	Handler *handlers.Handler
	// Reason is the reason why the handler is not called; empty means that it is called.
	Reason execution.SkipReason
	// Until is the time when the handler is due, if it is asleep.
	Until time.Time
}

// RecordEvaluation records a look with these verdicts. The reason is that of a cause, or "background".
func (s Story) RecordEvaluation(reason string, verdicts ...EvaluationVerdict) Story {
	c := &cause.Cause{Reason: cause.Reason(reason)}
	// An update needs a diff, because the look shows changed paths.
	if c.Reason == cause.Update {
		c.Diff = diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "size"}, Old: int64(1), New: int64(2)}}
	}
	// Background handlers have their own kind of look.
	look := s.object.StartEvaluation(c)
	if reason == "background" {
		look = s.object.StartBackgroundEvaluation(c)
	}
	for _, v := range verdicts {
		// The operands fit a handler for creations; other reasons ignore them.
		look.AddVerdict(v.Handler, execution.Stop{
			Adapter: "Test", Reason: v.Reason, Until: v.Until, Expected: cause.Create, Found: c.Reason,
		})
	}
	look.AddToJournal()
	return s
}

// RecordCall records a call of a handler with the given number of the attempt and outcome.
func (s Story) RecordCall(h *handlers.Handler, number int, outcome execution.Outcome) Story {
	// Retry counts from 0, so the first attempt is number 1.
	s.object.RecordAttempt(&execution.Attempt{
		Call: handlers.Invocation{Handler: h, Retry: number - 1}, Outcome: outcome, Duration: time.Second,
	})
	return s
}

// RecordHold records why the object is not handled, with one of the constants of package journal.
func (s Story) RecordHold(why string, err error, until time.Time) Story {
	s.object.RecordHold(why, err, until)
	return s
}

// FakeOperator is a journal.Live with a state that the test sets. Any goroutine may use it.
type FakeOperator struct {
	mu    sync.Mutex
	state journal.OperatorState
}

// SetState replaces the state.
func (o *FakeOperator) SetState(now journal.OperatorState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = now
}

// OperatorState returns the state that was set last.
func (o *FakeOperator) OperatorState() journal.OperatorState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}
