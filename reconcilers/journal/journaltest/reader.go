package journaltest

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// Reader is a journal of one kind, and the operator that it asks how it stands.
type Reader struct {
	// Journal is for whoever notes something about several kinds, Kind for what is about this one.
	Journal *journal.Journal
	Kind    *journal.Kind

	t        testing.TB
	resource discovery.Resource
}

var _ journal.Live = (*Reader)(nil)

// NewReader makes an empty journal of a namespaced kind.
func NewReader(t testing.TB, of schema.GroupKind) *Reader {
	own := journal.New(journal.Limits{})
	r := &Reader{Journal: own, Kind: own.Kind(of, nil), t: t, resource: discovery.Resource{
		GroupVersionKind: of.WithVersion("v1"), Plural: strings.ToLower(of.Kind) + "s", Namespaced: true,
	}}
	own.Watch(r)
	return r
}

// Standing is that of an operator of the kind.
func (r *Reader) Standing() journal.Standing {
	served := r.Kind.Served(r.resource, nil)
	served.Namespaces = []string{""}
	return journal.Standing{Running: true, Kinds: []journal.Served{served}}
}

// Lines are what was noted of the object, the oldest first: without times, but for those that are yet to come, as
// seconds from the entry on.
func (r *Reader) Lines(namespace, name string) (lines []string) {
	r.t.Helper()
	told, err := r.Journal.Explain(r.resource.Kind, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, entry := range told.History {
		lines = append(lines, line(entry))
	}
	return lines
}

func line(e journal.Entry) string {
	text := ""
	switch {
	case e.Event != nil:
		text = fmt.Sprintf("event %s %s", e.Event.Type, e.Event.Version)
	case e.Look != nil:
		text = look(e)
	case e.Attempt != nil:
		a := e.Attempt
		text = fmt.Sprintf("call %s for %s, attempt %d: %s", a.Handler, a.On, a.Number, a.Outcome) + because(a.Error)
		if a.Next != nil {
			text += fmt.Sprintf(", again after %s", a.Next.Sub(e.At))
		}
	case e.Write != nil:
		text = fmt.Sprintf("write %s", strings.Join(e.Write.What, " "))
		if e.Write.By != "" {
			text += " by " + e.Write.By
		}
		text += because(e.Write.Error)
	case e.Hold != nil:
		text = "hold, " + e.Hold.Why + because(e.Hold.Error)
		if e.Hold.Until != nil {
			text += fmt.Sprintf(", until after %s", e.Hold.Until.Sub(e.At))
		}
	}
	if e.Times > 1 {
		text += fmt.Sprintf(" (%d times)", e.Times)
	}
	return text
}

func because(err string) string {
	if err == "" {
		return ""
	}
	return ": " + err
}

func look(e journal.Entry) string {
	text := strings.TrimSpace("look " + e.Look.Reason + " " + e.Look.Type)
	if e.Look.Initial {
		text += ", initial"
	}
	if len(e.Look.Changed) > 0 {
		text += " of " + strings.Join(e.Look.Changed, " ")
	}
	if e.Look.Dropped != "" {
		text += ", dropped as " + e.Look.Dropped
	}
	if e.Look.Unnoticed != "" {
		text += ", unnoticed"
	}
	for _, v := range e.Look.Verdicts {
		text += "; " + v.Handler
		if v.Why != "" {
			text += " not: " + v.By + " says " + v.Why
		}
		if v.Until != nil {
			text += fmt.Sprintf(", until after %s", v.Until.Sub(e.At))
		}
	}
	return text
}
