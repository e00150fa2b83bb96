package journaltest

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Handler is one that is called for: create, update, delete, resume, event, daemon, timer or sub-handler.
func Handler(id, on string) *handlers.Handler {
	h := &handlers.Handler{ID: id, Family: handlers.Changing, Location: "main.go:12"}
	switch on {
	case "event":
		h.Family = handlers.Watching
	case "daemon", "timer":
		h.Family, h.Background = handlers.Spawning, &handlers.Background{Daemon: on == "daemon"}
	case "sub-handler":
		h.Root = "root"
	case "resume":
		h.Initial = true
	default:
		h.Reason = cause.Reason(on)
	}
	return h
}

// Demanding is the handler with a filter, in the words of its registration.
func Demanding(h *handlers.Handler, words string) *handlers.Handler {
	h.Words.Filters = append(h.Words.Filters, requirements.Criterion{Text: words})
	return h
}

// Resource is a namespaced kind, such as Widget in the group example.org.
func Resource(group, kind, plural string) discovery.Resource {
	return discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural,
		Namespaced: true,
	}
}

// Served is the kind with these handlers, served in all namespaces, as an operator tells the journal of it.
func Served(j *journal.Journal, r discovery.Resource, own ...*handlers.Handler) journal.Served {
	served := j.Kind(schema.GroupKind{Group: r.Group, Kind: r.Kind}, nil).Served(r, own)
	served.Namespaces = []string{""}
	return served
}

// Story is what happens to one object, as it is told to a journal.
type Story struct{ of journal.Object }

// Of begins the story of an object.
func Of(j *journal.Journal, r discovery.Resource, namespace, name string) Story {
	kind := j.Kind(schema.GroupKind{Group: r.Group, Kind: r.Kind}, nil)
	return Story{kind.Object(types.NamespacedName{Namespace: namespace, Name: name}, types.UID("uid-"+name))}
}

// Event has the watch bring the object, by an event of this type.
func (s Story) Event(eventType string) Story {
	s.of.Event(eventType, "7")
	return s
}

// Verdict is what a look finds about a handler.
type Verdict struct {
	Handler *handlers.Handler
	// Why is why it is not called; empty has it called.
	Why execution.Why
	// Until is when it is called, if it is asleep.
	Until time.Time
}

// Look has the object be looked at for a reason of causes, or as it is in the background.
func (s Story) Look(reason string, verdicts ...Verdict) Story {
	c := &cause.Cause{Reason: cause.Reason(reason)}
	if c.Reason == cause.Update {
		c.Diff = diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "size"}, Old: int64(1), New: int64(2)}}
	}
	look := s.of.Look(c)
	if reason == "background" {
		look = s.of.LookForBackground(c)
	}
	for _, v := range verdicts {
		look.Verdict(v.Handler, execution.Stop{
			By: "Test", Why: v.Why, Until: v.Until, Expected: cause.Create, Found: c.Reason,
		})
	}
	look.Note()
	return s
}

// Call has a handler be called, for the number-th time, with this outcome.
func (s Story) Call(h *handlers.Handler, number int, outcome execution.Outcome) Story {
	s.of.Attempt(&execution.Attempt{
		Call: handlers.Invocation{Handler: h, Retry: number - 1}, Outcome: outcome, Took: time.Second,
	})
	return s
}

// Hold has the object be held, for a reason of package journal.
func (s Story) Hold(why string, err error, until time.Time) Story {
	s.of.Hold(why, err, until)
	return s
}

// Operator is how an operator stands, until that is changed. Any goroutine may ask.
type Operator struct {
	mu  sync.Mutex
	now journal.Standing
}

// Set has it stand so from now on.
func (o *Operator) Set(now journal.Standing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = now
}

// Standing is as it was set.
func (o *Operator) Standing() journal.Standing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}
