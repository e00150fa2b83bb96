package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Explanation says what has become of one object.
type Explanation struct {
	Operator  string    `json:"operator"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Now is what holds at the moment for the object as a whole, and for all of its handlers.
	Now []string `json:"now,omitempty"`
	// Handlers are those of the kind, each with the answer.
	Handlers []Answer `json:"handlers"`
	// History is what has happened, the oldest first.
	History []Entry `json:"history"`
}

// Answer says why a handler was called, or not.
type Answer struct {
	Handler Registered `json:"handler"`
	// Says is the answer, for people.
	Says string `json:"says"`
	// Verdict is the last one about the handler, At its time; Attempt is its last attempt, Called the time of that.
	Verdict *Verdict   `json:"verdict,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	Attempt *Attempt   `json:"attempt,omitempty"`
	Called  *time.Time `json:"called,omitempty"`
}

// Watch has the journal ask how the operator stands.
func (j *Journal) Watch(live Live) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live = live
}

// Standing is how the operator stands.
func (j *Journal) Standing() Standing {
	j.mu.Lock()
	live := j.live
	j.mu.Unlock()
	if live == nil {
		return Standing{}
	}
	return live.Standing()
}

// Explain answers for one object. The kind is its name as kubectl takes it, with or without its group. It is a
// [*QuestionError] if that is not served, or may be several, or if the namespace is missing.
func (j *Journal) Explain(kind string, object types.NamespacedName) (Explanation, error) {
	standing := j.Standing()
	served, err := standing.find(kind)
	if err != nil {
		return Explanation{}, err
	}
	if served.Namespaced && object.Namespace == "" {
		return Explanation{}, &QuestionError{text: fmt.Sprintf(
			"kind %s is namespaced: use %s NAMESPACE/%s", served, kind, object.Name,
		)}
	}
	if !served.Namespaced {
		object.Namespace = ""
	}
	uid, history := j.history(Key{Kind: served.GroupKind(), Object: object})
	e := Explanation{
		Operator: standing.Operator, At: now(), Kind: served.String(), Namespace: object.Namespace, Name: object.Name,
		UID: uid, Handlers: make([]Answer, 0, len(served.Handlers)), History: history,
	}
	e.Now = append(standing.sentences(object.Namespace), j.sentences(served, e)...)
	for _, h := range served.Handlers {
		e.Handlers = append(e.Handlers, answer(h, history))
	}
	return e, nil
}

// history gives what is known of an object.
func (j *Journal) history(of Key) (types.UID, []Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pages[of]
	if p == nil {
		return "", []Entry{}
	}
	return p.uid, slices.Clone(p.entries)
}

// sentences say what holds for all objects of a namespace.
func (s Standing) sentences(namespace string) (all []string) {
	switch {
	case !s.Running:
		all = append(all, "The operator is not active: it is starting or exiting, or another replica is the leader. "+
			"No handlers are called.")
	case s.Paused:
		all = append(all, "The operator is paused by a peer. It does not watch objects, and no handlers are called.")
	case slices.Contains(s.PausedNamespaces, namespace):
		all = append(all, fmt.Sprintf("The operator is paused by a peer in namespace %q. No handlers are called for "+
			"its objects.", namespace))
	case len(s.Waiting) > 0:
		all = append(all, "All handlers wait until the indices are filled. Not listed yet: "+
			strings.Join(s.Waiting, ", ")+".")
	}
	return all
}

// sentences say what holds for this one.
func (j *Journal) sentences(served Served, e Explanation) (all []string) {
	elsewhere := !slices.Contains(served.Namespaces, "") && !slices.Contains(served.Namespaces, e.Namespace)
	switch {
	case len(e.History) > 0:
	case len(served.Namespaces) == 0:
		all = append(all, "The operator does not serve any namespace at the moment.")
	case elsewhere:
		all = append(all, fmt.Sprintf("The operator does not serve namespace %q; it serves %s.", e.Namespace,
			strings.Join(served.Namespaces, ", ")))
	default:
		others := ""
		if served.Labels != "" {
			others = fmt.Sprintf("or it does not match %q, which all handlers require, ", served.Labels)
		}
		all = append(all, fmt.Sprintf("The operator has no record of the object: it does not exist, %sor the watch has "+
			"not delivered it yet, or at least %d other objects changed since its last change.",
			others, j.most()))
	}
	return append(all, last(e.History)...)
}

// last says what holds the object, or why nobody was asked, if that has come last.
func last(history []Entry) []string {
	for _, entry := range slices.Backward(history) {
		switch {
		case entry.Hold != nil:
			return []string{entry.Hold.sentence()}
		case entry.Attempt != nil && entry.Attempt.ofChange():
			return nil
		case entry.Look == nil || !entry.Look.OfChange():
		case entry.Look.Reason == string(cause.Noop):
			return []string{"The last evaluation, " + clock(entry.At) + ", found no essential change: the status, and " +
				"metadata of Kubernetes and other operators, do not count."}
		case entry.Look.Reason == string(cause.Free):
			return []string{"The object is being deleted, and this operator does not block that. Last evaluated " +
				clock(entry.At) + "."}
		default:
			return nil
		}
	}
	return nil
}

// The reasons of looks that are none of causes.
const reasonEvent, reasonBackground = "event", "background"

// OfChange tells whether the look was one at changes.
func (l *Look) OfChange() bool { return l.Reason != reasonEvent && l.Reason != reasonBackground }

// ofChange tells whether it was a handler of changes that was called.
func (a *Attempt) ofChange() bool { return isOfChanges(a.On) }

func isOfChanges(on string) bool {
	switch on {
	case "event", "child", "daemon", "timer", "index":
		return false
	}
	return true
}

// news is what is known of one handler.
type news struct {
	verdict *Verdict
	look    *Look
	looked  time.Time
	attempt *Attempt
	called  time.Time
	dropped string // that an unfinished attempt is not gone on with

	unnoticed string // which later state of the object calls no handler
}

// answer finds the last news of a handler.
func answer(h Registered, history []Entry) Answer {
	var n news
	for i := range history {
		n.take(h, &history[i])
	}
	a := Answer{Handler: h, Verdict: n.verdict, Attempt: n.attempt, Says: n.says()}
	if n.verdict != nil {
		a.At = &n.looked
	}
	if n.attempt != nil {
		a.Called = &n.called
	}
	return a
}

// take takes an entry into account; they come in the order of time.
func (n *news) take(h Registered, e *Entry) {
	if a := e.Attempt; a != nil && a.Handler == h.ID && a.On == h.On {
		n.attempt, n.called, n.dropped, n.unnoticed = a, e.At, "", ""
	}
	if e.Look == nil {
		return
	}
	for i, v := range e.Look.Verdicts {
		if v.Handler == h.ID && v.On == h.On {
			n.verdict, n.look, n.looked = &e.Look.Verdicts[i], e.Look, e.At
		}
	}
	if e.Look.Unnoticed != "" && isOfChanges(h.On) {
		n.unnoticed = e.Look.Unnoticed + "."
	}
	unfinished := n.attempt != nil && n.attempt.ofChange() && n.attempt.Next != nil
	if unfinished && e.Look.Dropped != "" {
		n.dropped = "Its retries were dropped " + clock(e.At) + ": " + e.Look.Dropped + "."
	}
}

// says puts it together.
func (n *news) says() string {
	var parts []string
	switch {
	case n.verdict != nil && n.verdict.Why != "" && !n.looked.Before(n.called):
		parts = append(parts, "Not called "+clock(n.looked)+", for "+n.look.happening()+": "+n.verdict.sentence()+".")
		if n.attempt != nil {
			parts = append(parts, "Called before, "+clock(n.called)+": "+n.attempt.sentence()+".")
		}
	case n.attempt != nil:
		parts = append(parts, "Called "+clock(n.called)+": "+n.attempt.sentence()+".")
	case n.verdict != nil:
		parts = append(parts, "Selected "+clock(n.looked)+", for "+n.look.happening()+": it is running, or is next.")
	default:
		parts = append(parts, "Not evaluated yet.")
	}
	for _, more := range []string{n.dropped, n.unnoticed} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, " ")
}
