package journal

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// withheldErrorText replaces the error text of an object with secret values, because the error may contain such a
// value.
const withheldErrorText = "(left out, because the object has secret values; see the log)"

// KindJournal records entries for the objects of one kind. A nil Kind records nothing.
type KindJournal struct {
	journal *Journal
	kind    schema.GroupKind
	secret  []diff.Path // paths of values that are never kept; an empty path is the whole object

	// shared holds recent entries that several objects can share.
	shared sharedEntries
}

// ForKind returns the recorder of one kind, with the paths of its secret values. All values of v1 Secrets are secret in
// any case. A nil Journal returns nil.
func (j *Journal) ForKind(of schema.GroupKind, secret []diff.Path) *KindJournal {
	if j == nil {
		return nil
	}
	// Even without digests, values of Secrets must not be readable in the journal.
	if of == (schema.GroupKind{Kind: "Secret"}) {
		secret = []diff.Path{nil}
	}
	return &KindJournal{journal: j, kind: of, secret: secret}
}

// ObjectJournal records entries for one object. The zero value records nothing.
type ObjectJournal struct {
	kind *KindJournal
	key  types.NamespacedName
	uid  types.UID
}

// ForObject returns the recorder of one object.
func (k *KindJournal) ForObject(key types.NamespacedName, uid types.UID) ObjectJournal {
	return ObjectJournal{kind: k, key: key, uid: uid}
}

// ForBody returns the recorder of the object with this content.
func (k *KindJournal) ForBody(body map[string]any) ObjectJournal {
	if k == nil {
		return ObjectJournal{}
	}
	// Malformed metadata lead to empty names, and never to a panic.
	metadata, _ := body["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	// The uid detects a new object under the same name.
	return k.ForObject(types.NamespacedName{Namespace: namespace, Name: name}, types.UID(patching.ObjectUID(body)))
}

// IsRecording reports whether anything is recorded, so that callers can skip work.
func (o ObjectJournal) IsRecording() bool { return o.kind != nil }

// addEntry adds an entry, with the present time unless it has one.
func (o ObjectJournal) addEntry(e Entry) {
	if o.kind == nil {
		return
	}
	if e.At.IsZero() {
		e.At = currentTime()
	}
	o.kind.journal.addEntry(Key{Kind: o.kind.kind, Object: o.key}, o.uid, e)
}

// RecordEvent records an event of the watch. The type is empty for objects of the first listing.
func (o ObjectJournal) RecordEvent(eventType, version string) {
	if o.kind == nil {
		return
	}
	// The engine uses the empty type for the first listing; users see a word.
	if eventType == "" {
		eventType = "LISTED"
	}
	o.addEntry(Entry{Event: &EventEntry{Type: eventType, Version: version}})
}

// RecordAttempt records a finished call, and the time of the next one, if the outcome has a delay.
func (o ObjectJournal) RecordAttempt(a *execution.Attempt) {
	if o.kind == nil {
		return
	}
	// Retry counts from 0, as in Kopf; users see attempts from 1.
	called := &AttemptEntry{
		Handler: a.Call.Handler.ID, Purpose: a.Call.Handler.VerbName(), Number: a.Call.Retry + 1,
		Outcome: outcomeOf(a.Outcome),
		// An error that the options of the handler ignore is recorded as well.
		Error:   o.kind.errorText(cmp.Or(a.Outcome.Err, a.Outcome.Ignored)),
		Seconds: a.Duration.Round(time.Microsecond).Seconds(),
	}
	// No attempt follows a final outcome, whatever its delay is.
	if a.Outcome.Delay != nil && !a.Outcome.Final {
		next := currentTime().Add(*a.Outcome.Delay)
		called.Next = &next
	}
	o.addEntry(Entry{Attempt: called})
}

// outcomeOf names the outcome. Blocked and aborted attempts come first, because their errors are not those of the
// handler.
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
	case o.Err == nil || isPending(o.Err):
		// Not final and without a failure: the handler continues later.
		return Waiting
	default:
		return Retried
	}
}

// RecordHold records why the object is not handled until the given time, or until its next event if that is zero.
func (o ObjectJournal) RecordHold(why string, err error, until time.Time) {
	if o.kind == nil {
		return
	}
	held := &Hold{Reason: why, Error: o.kind.errorText(err)}
	if !until.IsZero() {
		// JSON output has times in UTC only.
		until = until.UTC()
		held.Until = &until
	}
	o.addEntry(Entry{Hold: held})
}

// RecordPause records that the object is paused. The text says what ends the pause.
func (o ObjectJournal) RecordPause(text string) {
	o.addEntry(Entry{Hold: &Hold{Reason: HeldPaused, Error: text}})
}

// RecordFormerFailure records a permanent failure that an earlier process has left on the object, with its time.
func (o ObjectJournal) RecordFormerFailure(h *handlers.Handler, at time.Time, message string) {
	if o.kind == nil {
		return
	}
	called := &AttemptEntry{Handler: h.ID, Purpose: h.VerbName(), Outcome: Failed, IsFormer: true}
	if message != "" {
		called.Error = o.kind.errorText(errors.New(message))
	}
	o.addEntry(Entry{At: at.UTC(), Attempt: called})
}

// errorText returns the text of an error, or a note if the kind has secret values. Without an error, it is empty.
func (k *KindJournal) errorText(err error) string {
	if err == nil {
		return ""
	}
	// Errors of handlers can quote any value of the object, so none is kept.
	if len(k.secret) > 0 {
		return withheldErrorText
	}
	return storage.TextExcerpt(err.Error())
}

// hidesPath reports whether the path is secret, contains secret values, or is a part of one.
func (k *KindJournal) hidesPath(path diff.Path) bool {
	return slices.ContainsFunc(k.secret, func(secret diff.Path) bool {
		return path.HasPrefix(secret...) || secret.HasPrefix(path...)
	})
}

// isPending reports whether the error is not a failure, but a wait for sub-handlers or a child.
func isPending(err error) bool {
	var pending *execution.PendingError
	return errors.As(err, &pending)
}
