package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
			"objects of the kind %s have a namespace: ask about %s NAMESPACE/%s", served, kind, object.Name,
		)}
	}
	if !served.Namespaced {
		object.Namespace = ""
	}
	uid, history := j.history(Key{Kind: served.GroupKind(), Object: object})
	e := Explanation{
		Operator: standing.Operator, At: now(), Kind: served.String(), Namespace: object.Namespace, Name: object.Name,
		UID: uid, History: history,
	}
	e.Now = append(standing.sentences(), j.sentences(served, e)...)
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

// sentences say what holds for all objects.
func (s Standing) sentences() (all []string) {
	switch {
	case !s.Running:
		all = append(all, "The operator is not at work: it starts, or it exits, or another replica leads. "+
			"No handler is called.")
	case s.Paused:
		all = append(all, "The operator is paused, as another one is at work. It watches nothing, "+
			"and no handler is called.")
	case len(s.Waiting) > 0:
		all = append(all, "All handlers wait until the indices are filled: these are not listed yet: "+
			strings.Join(s.Waiting, ", ")+".")
	}
	return all
}

// sentences say what holds for this one.
func (j *Journal) sentences(served Served, e Explanation) (all []string) {
	elsewhere := !slices.Contains(served.Namespaces, "") && !slices.Contains(served.Namespaces, e.Namespace)
	switch {
	case len(e.History) > 0:
	case elsewhere:
		all = append(all, fmt.Sprintf("The operator does not serve namespace %q, but %s.", e.Namespace,
			strings.Join(served.Namespaces, ", ")))
	default:
		all = append(all, fmt.Sprintf("Nothing is known of the object: there is none of this name, or the watch has "+
			"not brought it yet, or it has been quiet for so long that the last %d objects have taken its place.",
			j.limits.Objects))
	}
	return append(all, held(e.History)...)
}

// held says what holds the object, if that has come last.
func held(history []Entry) []string {
	for _, entry := range slices.Backward(history) {
		switch {
		case entry.Hold != nil:
			return []string{entry.Hold.sentence()}
		case entry.Look != nil && entry.Look.Reason != reasonEvent, entry.Attempt != nil:
			return nil
		}
	}
	return nil
}

// The reasons of looks that are none of causes.
const reasonEvent, reasonBackground = "event", "background"

// news is what is known of one handler.
type news struct {
	verdict *Verdict
	look    *Look
	looked  time.Time
	attempt *Attempt
	called  time.Time
	quiet   *Look // a look after both that has found nothing for handlers of changes
	rested  time.Time
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
	switch {
	case e.Attempt != nil && e.Attempt.Handler == h.ID && e.Attempt.On == h.On:
		n.attempt, n.called, n.quiet = e.Attempt, e.At, nil
	case e.Look == nil:
	case n.takeVerdict(h, e):
		n.quiet = nil
	case changing(h) && len(e.Look.Verdicts) == 0 && e.Look.Reason != reasonEvent && e.Look.Reason != reasonBackground:
		n.quiet, n.rested = e.Look, e.At
	}
}

func (n *news) takeVerdict(h Registered, e *Entry) bool {
	for i, v := range e.Look.Verdicts {
		if v.Handler == h.ID && v.On == h.On {
			n.verdict, n.look, n.looked = &e.Look.Verdicts[i], e.Look, e.At
			return true
		}
	}
	return false
}

// changing tells whether the handler is one of those for changes.
func changing(h Registered) bool {
	switch h.On {
	case "event", "child", "daemon", "timer":
		return false
	}
	return true
}

// says puts it together.
func (n *news) says() string {
	var parts []string
	switch {
	case n.verdict != nil && n.verdict.Why != "" && !n.looked.Before(n.called):
		parts = append(parts, "Not called "+clock(n.looked)+", "+n.look.happening()+": "+n.verdict.sentence()+".")
		if n.attempt != nil {
			parts = append(parts, "Called before, "+clock(n.called)+": "+n.attempt.sentence()+".")
		}
	case n.attempt != nil:
		parts = append(parts, "Called "+clock(n.called)+": "+n.attempt.sentence()+".")
	case n.verdict != nil:
		parts = append(parts, "Selected "+clock(n.looked)+", "+n.look.happening()+": it is being called, or is next.")
	case n.quiet == nil:
		parts = append(parts, "Nothing has happened yet that it was asked about.")
	}
	if n.quiet != nil {
		parts = append(parts, n.quiet.quietly(n.rested))
	}
	return strings.Join(parts, " ")
}
