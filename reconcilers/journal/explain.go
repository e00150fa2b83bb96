package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
)

// Explanation is the history of one object, and the reason why each handler ran or did not run.
type Explanation struct {
	Operator  string    `json:"operator"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Facts holds sentences that apply to the object as a whole, and so to all of its handlers.
	Facts []string `json:"now,omitempty"`
	// Handlers holds the answer for each handler of the kind.
	Handlers []Answer `json:"handlers"`
	// History holds the recorded entries, the oldest first.
	History []Entry `json:"history"`
}

// Answer says why a handler was called or not.
type Answer struct {
	Handler RegisteredHandler `json:"handler"`
	// Text is the answer as text.
	Text string `json:"says"`
	// Verdict is the last decision about the handler, made at the time At. Attempt is its last call, at the time
	// Called.
	Verdict   *HandlerVerdict `json:"verdict,omitempty"`
	DecidedAt *time.Time      `json:"at,omitempty"`
	Attempt   *AttemptEntry   `json:"attempt,omitempty"`
	CalledAt  *time.Time      `json:"called,omitempty"`
}

// SetLive sets the source of the operator's state. Nil journals ignore it.
func (j *Journal) SetLive(live LiveState) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live = live
}

// OperatorState returns the state of the operator. It is empty before [Journal.SetLive] was called.
func (j *Journal) OperatorState() OperatorState {
	j.mu.Lock()
	live := j.live
	j.mu.Unlock()
	// Without the lock: the operator may be slow, or may write to the journal meanwhile.
	if live == nil {
		return OperatorState{}
	}
	return live.OperatorState()
}

// Explain explains one object. The kind is a name that kubectl accepts, with or without its group. Explain returns a
// [*QuestionError] if the kind is not served or is ambiguous, or if the namespace is missing.
func (j *Journal) Explain(kind string, object types.NamespacedName) (Explanation, error) {
	standing := j.OperatorState()
	served, err := standing.findKind(kind)
	if err != nil {
		return Explanation{}, err
	}
	// The namespace decides which object is meant, so it is never guessed.
	if served.Namespaced && object.Namespace == "" {
		return Explanation{}, &QuestionError{text: fmt.Sprintf(
			"kind %s is namespaced: use %s NAMESPACE/%s", served, kind, object.Name,
		)}
	}
	if !served.Namespaced {
		// Ignore a namespace for cluster-scoped kinds, as kubectl does.
		object.Namespace = ""
	}
	// The history is copied once, so that all answers are based on the same entries.
	history, uid, _, _ := j.EntriesOf(Key{Kind: served.GroupKind(), Object: object})
	e := Explanation{
		Operator: standing.Operator, At: currentTime(), Kind: served.String(), Namespace: object.Namespace,
		Name: object.Name,
		UID:  uid, Handlers: make([]Answer, 0, len(served.Handlers)), History: history,
	}
	// Facts about the whole operator come first, because they explain the state of all handlers.
	e.Facts = append(standing.factsFor(object.Namespace), standing.rangeFacts(uid)...)
	e.Facts = append(e.Facts, j.factsAbout(served, e)...)
	for _, h := range served.Handlers {
		e.Handlers = append(e.Handlers, answerFor(h, history))
	}
	return e, nil
}

// factsFor returns the facts that apply to all objects of a namespace.
func (s OperatorState) factsFor(namespace string) (all []string) {
	switch {
	case !s.Running:
		all = append(all, "The operator is not active: it is starting or exiting, or another replica is the leader. "+
			"No handlers are called.")
	case s.Standby != "":
		all = append(all, "The operator is on standby. "+s.Standby+" It does not watch objects, and no handlers are "+
			"called.")
	case s.Paused:
		all = append(all, "The operator is paused by a peer. It does not watch objects, and no handlers are called.")
	case slices.Contains(s.PausedNamespaces, namespace):
		all = append(all, fmt.Sprintf("The operator is paused by a peer in namespace %q. No handlers are called for "+
			"its objects.", namespace))
	case len(s.UnlistedResources) > 0:
		all = append(all, "All handlers wait until the indices are filled. Not listed yet: "+
			strings.Join(s.UnlistedResources, ", ")+".")
	}
	return all
}

// factsAbout returns the facts that apply to this object.
func (j *Journal) factsAbout(served ServedKind, e Explanation) (all []string) {
	// An empty name in the list is the whole cluster.
	elsewhere := !slices.Contains(served.Namespaces, "") && !slices.Contains(served.Namespaces, e.Namespace)
	// Without any entry, say why: no namespace, another namespace, or nothing was recorded.
	switch {
	case len(e.History) > 0:
		// There are entries, so the object is or was watched.
	case len(served.Namespaces) == 0:
		all = append(all, "The operator does not serve any namespace at the moment.")
	case elsewhere:
		all = append(all, fmt.Sprintf("The operator does not serve namespace %q; it serves %s.", e.Namespace,
			strings.Join(served.Namespaces, ", ")))
	default:
		// If all handlers require the same labels, the watch does not deliver other objects.
		others := ""
		if served.Labels != "" {
			others = fmt.Sprintf("or it does not match %q, which all handlers require, ", served.Labels)
		}
		all = append(all, fmt.Sprintf("The operator has no record of the object: it does not exist, %sor the watch "+
			"has not delivered it yet, or at least %d other objects changed since its last change.",
			others, j.objectLimit()))
	}
	// The reason that holds the object comes last, after the general ones.
	return append(all, lastFact(e.History)...)
}

// lastFact says what blocks the object, or why its last pass called no handlers. It returns nothing if a later entry
// makes that obsolete.
func lastFact(history []Entry) []string {
	for _, entry := range slices.Backward(history) {
		switch {
		case entry.Hold != nil:
			return []string{entry.Hold.holdText()}
		case entry.Attempt != nil && entry.Attempt.isOfChange():
			// A handler was called since, so nothing holds the object.
			return nil
		case entry.Evaluation == nil || !entry.Evaluation.IsOfChange():
			// Events, writes, and calls outside of changes say nothing about this: look further back.
		case entry.Evaluation.Reason == string(cause.Noop):
			return []string{"The last evaluation, " + formatTime(entry.At) + ", found no essential change: the " +
				"status, and metadata of Kubernetes and other operators, do not count."}
		case entry.Evaluation.Reason == string(cause.Free):
			return []string{"The object is being deleted, and this operator does not block that. Last evaluated " +
				formatTime(entry.At) + "."}
		default:
			return nil
		}
	}
	return nil
}

// These are the reasons of looks without a cause.
const reasonEvent, reasonBackground = "event", "background"

// IsOfChange reports whether the look was at a change, not at an event or background handlers.
func (l *Evaluation) IsOfChange() bool {
	return l.Reason != reasonEvent && l.Reason != reasonBackground
}

// isOfChange reports whether the attempt was of a change handler.
func (a *AttemptEntry) isOfChange() bool { return IsForChanges(a.Purpose) }

// IsForChanges reports whether handlers of this purpose run until they have finished a change. All others run
// repeatedly.
func IsForChanges(purpose string) bool {
	switch purpose {
	case "event", "child", "daemon", "timer", "index":
		return false
	}
	return true
}

// handlerHistory collects the latest entries about one handler.
type handlerHistory struct {
	verdict     *HandlerVerdict
	evaluation  *Evaluation
	evaluatedAt time.Time
	attempt     *AttemptEntry
	calledAt    time.Time
	droppedNote string // why an unfinished attempt is not continued; empty if it is

	unnoticedNote string // the later state that does not call the handler; empty if none
}

// answerFor builds the answer for a handler from the history.
func answerFor(h RegisteredHandler, history []Entry) Answer {
	// The history is short, so it is read once for each handler.
	var n handlerHistory
	for i := range history {
		n.addEntry(h, &history[i])
	}
	a := Answer{Handler: h, Verdict: n.verdict, Attempt: n.attempt, Text: n.answerText()}
	if n.verdict != nil {
		a.DecidedAt = &n.evaluatedAt
	}
	if n.attempt != nil {
		a.CalledAt = &n.calledAt
	}
	return a
}

// addEntry adds an entry. The entries must come in the order of time.
func (n *handlerHistory) addEntry(h RegisteredHandler, e *Entry) {
	// A new call makes earlier notes about the handler obsolete.
	if a := e.Attempt; a != nil && a.Handler == h.ID && a.Purpose == h.Purpose {
		n.attempt, n.calledAt, n.droppedNote, n.unnoticedNote = a, e.At, "", ""
	}
	if e.Evaluation == nil {
		return
	}
	// Point into the history instead of copying: entries never change once they are in the journal.
	for i, v := range e.Evaluation.Verdicts {
		if v.Handler == h.ID && v.Purpose == h.Purpose {
			n.verdict, n.evaluation, n.evaluatedAt = &e.Evaluation.Verdicts[i], e.Evaluation, e.At
		}
	}
	if e.Evaluation.UnnoticedState != "" && IsForChanges(h.Purpose) {
		n.unnoticedNote = e.Evaluation.UnnoticedState + "."
	}
	// A note about a dropped change only concerns a handler whose last attempt expected another one.
	unfinished := n.attempt != nil && n.attempt.isOfChange() && n.attempt.Next != nil
	if unfinished && e.Evaluation.DroppedReason != "" {
		n.droppedNote = "Its retries were dropped " + formatTime(e.At) + ": " + e.Evaluation.DroppedReason + "."
	}
}

// answerText returns the answer as text: the last decision or call, the call before a decision, and notes on both.
func (n *handlerHistory) answerText() string {
	var parts []string
	switch {
	case n.verdict != nil && n.verdict.Reason != "" && !n.evaluatedAt.Before(n.calledAt):
		// Times can be equal, because they are truncated: the verdict is then the later one.
		parts = append(parts,
			"Not called "+formatTime(n.evaluatedAt)+", for "+n.evaluation.causeText()+": "+n.verdict.whyNotCalled()+".")
		if n.attempt != nil {
			parts = append(parts, "Called before, "+formatTime(n.calledAt)+": "+n.attempt.outcomeText()+".")
		}
	case n.attempt != nil:
		// The last entry about the handler is its call.
		parts = append(parts, "Called "+formatTime(n.calledAt)+": "+n.attempt.outcomeText()+".")
	case n.verdict != nil:
		// It was selected, and no call has ended yet.
		parts = append(parts,
			"Selected "+formatTime(n.evaluatedAt)+", for "+n.evaluation.causeText()+": it is running, or is next.")
	default:
		parts = append(parts, "Not evaluated yet.")
	}
	// Notes that explain why no further call follows.
	for _, more := range []string{n.droppedNote, n.unnoticedNote} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, " ")
}
