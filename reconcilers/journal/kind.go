package journal

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// withheld stands for the text of an error of an object with secret values.
const withheld = "(left out, because the object has secret values; see the log)"

// Kind notes what happens to the objects of one kind. Nil notes nothing.
type Kind struct {
	journal *Journal
	kind    schema.GroupKind
	secret  []diff.Path // the values that are never kept; a nil path is the whole object

	shared shared
}

// Kind is for one kind, with the paths of its values that are secret; those of v1 Secrets are in any case. Of a nil
// journal, it is nil.
func (j *Journal) Kind(of schema.GroupKind, secret []diff.Path) *Kind {
	if j == nil {
		return nil
	}
	if of == (schema.GroupKind{Kind: "Secret"}) {
		secret = []diff.Path{nil}
	}
	return &Kind{journal: j, kind: of, secret: secret}
}

// Object notes what happens to one object. The zero value notes nothing.
type Object struct {
	kind *Kind
	key  types.NamespacedName
	uid  types.UID
}

// Object is for one object.
func (k *Kind) Object(key types.NamespacedName, uid types.UID) Object {
	return Object{kind: k, key: key, uid: uid}
}

// Of is for the object that this is.
func (k *Kind) Of(body map[string]any) Object {
	if k == nil {
		return Object{}
	}
	metadata, _ := body["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return k.Object(types.NamespacedName{Namespace: namespace, Name: name}, types.UID(patching.UIDOf(body)))
}

// Kept tells whether anything is noted at all.
func (o Object) Kept() bool { return o.kind != nil }

func (o Object) note(e Entry) {
	if o.kind == nil {
		return
	}
	e.At = now()
	o.kind.journal.note(Key{Kind: o.kind.kind, Object: o.key}, o.uid, e)
}

// Event notes what the watch has brought: the type is empty for objects of the first listing.
func (o Object) Event(eventType, version string) {
	if o.kind == nil {
		return
	}
	if eventType == "" {
		eventType = "LISTED"
	}
	o.note(Entry{Event: &Event{Type: eventType, Version: version}})
}

// Attempt notes a call that has ended, and when the next one is due: after the delay of the outcome.
func (o Object) Attempt(a *execution.Attempt) {
	if o.kind == nil {
		return
	}
	called := &Attempt{
		Handler: a.Call.Handler.ID, On: a.Call.Handler.On(), Number: a.Call.Retry + 1, Outcome: outcomeOf(a.Outcome),
		Took: a.Took.Round(time.Microsecond).Seconds(),
	}
	if err := failureOf(a.Outcome); err != nil {
		called.Error = o.kind.text(err)
	}
	if a.Outcome.Delay != nil && !a.Outcome.Final {
		next := now().Add(*a.Outcome.Delay)
		called.Next = &next
	}
	o.note(Entry{Attempt: called})
}

func failureOf(o execution.Outcome) error {
	if o.Err == nil {
		return o.Ignored
	}
	return o.Err
}

func outcomeOf(o execution.Outcome) string {
	switch {
	case o.Blocked:
		return Blocked
	case o.Aborted:
		return Interrupted
	case o.Ignored != nil:
		return Ignored
	case o.Final && o.Err == nil:
		return Succeeded
	case o.Final:
		return Failed
	case o.Err == nil || pends(o.Err):
		return Waiting
	default:
		return Retried
	}
}

// Hold notes why nothing is done for the object: until then, or, if that is zero, until its next event.
func (o Object) Hold(why string, err error, until time.Time) {
	if o.kind == nil {
		return
	}
	held := &Hold{Why: why}
	if err != nil {
		held.Error = o.kind.text(err)
	}
	if !until.IsZero() {
		until = until.UTC()
		held.Until = &until
	}
	o.note(Entry{Hold: held})
}

// text is that of an error, where it cannot have values that are secret.
func (k *Kind) text(err error) string {
	if len(k.secret) > 0 {
		return withheld
	}
	return storage.Excerpt(err.Error())
}

// hides tells whether there are secret values at the path, in it, or around it.
func (k *Kind) hides(path diff.Path) bool {
	return slices.ContainsFunc(k.secret, func(secret diff.Path) bool {
		return path.HasPrefix(secret...) || secret.HasPrefix(path...)
	})
}

// pends tells whether it is no failure, but a wait for sub-handlers or a child.
func pends(err error) bool {
	var pending *execution.PendingError
	return errors.As(err, &pending)
}
