package journaltest

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// Reader is a journal with one kind, and the operator that serves this kind.
type Reader struct {
	// Journal is for code that records entries about several kinds, and Kind for code that records entries about this
	// kind.
	Journal *journal.Journal
	Kind    *journal.KindJournal

	t        testing.TB
	resource discovery.Resource
}

var _ journal.LiveState = (*Reader)(nil)

// NewReader creates an empty journal and the recorder of a namespaced kind.
func NewReader(t testing.TB, of schema.GroupKind) *Reader {
	own := journal.New(journal.RetentionLimits{})
	r := &Reader{Journal: own, Kind: own.ForKind(of, nil), t: t, resource: discovery.Resource{
		GroupVersionKind: of.WithVersion("v1"), Plural: strings.ToLower(of.Kind) + "s", Namespaced: true,
	}}
	// Explain needs the state of an operator, so the Reader provides one.
	own.SetLive(r)
	return r
}

// OperatorState returns the state of a running operator that serves the kind, without handlers.
func (r *Reader) OperatorState() journal.OperatorState {
	served := r.Kind.ServedKind(r.resource, nil)
	served.Namespaces = []string{""}
	return journal.OperatorState{Running: true, Kinds: []journal.ServedKind{served}}
}

// EntryLines returns the recorded entries of the object as lines, the oldest first. Times in the past are omitted, so
// that lines can be compared; future times are shown as durations after the entry.
func (r *Reader) EntryLines(namespace, name string) (lines []string) {
	r.t.Helper()
	// Read through Explain, as users do.
	told, err := r.Journal.Explain(r.resource.Kind, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, entry := range told.History {
		lines = append(lines, entryLine(entry))
	}
	return lines
}

// entryLine formats one entry.
func entryLine(e journal.Entry) string {
	text := ""
	switch {
	case e.Event != nil:
		text = fmt.Sprintf("event %s %s", e.Event.Type, e.Event.Version)
	case e.Evaluation != nil:
		text = evaluationLine(e)
	case e.Attempt != nil:
		a := e.Attempt
		text = fmt.Sprintf("call %s for %s, attempt %d: %s", a.Handler, a.Purpose, a.Number,
			a.Outcome) + errorSuffix(a.Error)
		if a.Next != nil {
			// A delay, because points in time differ between test runs.
			text += fmt.Sprintf(", again after %s", a.Next.Sub(e.At))
		}
	case e.Write != nil:
		text = fmt.Sprintf("write %s", strings.Join(e.Write.Paths, " "))
		if e.Write.Origin != "" {
			text += " by " + e.Write.Origin
		}
		text += errorSuffix(e.Write.Error)
	case e.Hold != nil:
		text = "hold, " + e.Hold.Reason + errorSuffix(e.Hold.Error)
		if e.Hold.Until != nil {
			text += fmt.Sprintf(", until after %s", e.Hold.Until.Sub(e.At))
		}
	}
	if e.Times > 1 {
		text += fmt.Sprintf(" (%d times)", e.Times)
	}
	return text
}

// errorSuffix formats an error text, if there is one.
func errorSuffix(err string) string {
	if err == "" {
		return ""
	}
	return ": " + err
}

// evaluationLine formats a look with its verdicts.
func evaluationLine(e journal.Entry) string {
	text := strings.TrimSpace("look " + e.Evaluation.Reason + " " + e.Evaluation.Type)
	if e.Evaluation.Initial {
		text += ", initial"
	}
	if len(e.Evaluation.ChangedPaths) > 0 {
		text += " of " + strings.Join(e.Evaluation.ChangedPaths, " ")
	}
	if e.Evaluation.DroppedReason != "" {
		text += ", dropped as " + e.Evaluation.DroppedReason
	}
	if e.Evaluation.UnnoticedState != "" {
		text += ", unnoticed"
	}
	for _, v := range e.Evaluation.Verdicts {
		text += "; " + v.Handler
		if v.Reason != "" {
			text += " not: " + v.Adapter + " says " + v.Reason
		}
		if v.Until != nil {
			text += fmt.Sprintf(", until after %s", v.Until.Sub(e.At))
		}
	}
	return text
}
