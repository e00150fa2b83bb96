package review

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// OwnWrites describes the writes of the operator itself to the objects of its handlers. Such updates are admitted
// without calling a handler: a handler that rejected them would prevent an invalid object from being handled and
// deleted.
type OwnWrites struct {
	// Prefixes are the prefixes of the operator's annotations.
	Prefixes []string
	// Finalizer is the operator's finalizer. An empty one matches none.
	Finalizer string
	// UserName returns the name of the operator's user, or "" if it is not known. It may call the API server. Nil means
	// that the user is not known.
	UserName func(ctx context.Context) string
}

// systemFields are fields of the metadata that only the API server sets.
var systemFields = []string{"generation", "managedFields", "resourceVersion"}

// isOwnWrite reports whether a request is an own write. There are three cases: an update of only the operator's
// annotations and finalizer, by any user; an update of these and the status, by the operator's user; and an update that
// removes finalizers from an object that is being deleted. An update without changes is not an own write.
func (o OwnWrites) isOwnWrite(ctx context.Context, asked *handlers.AdmissionRequest) bool {
	covered := asked.Subresource == "" || asked.Subresource == "status" // others do not change the metadata
	if asked.Operation != "UPDATE" || !covered || asked.Object == nil || asked.Old == nil {
		return false
	}
	changed := changedFields(asked.Object, asked.Old)
	// Everything outside of the metadata and the status is a change by a user or another controller.
	foreign := func(field string) bool { return field != "metadata" && field != "status" }
	if slices.ContainsFunc(changed, foreign) {
		return false
	}
	isOwn := false
	if slices.Contains(changed, "metadata") {
		count, own := o.countOwnChanges(asked.Object.MappingAt("metadata"), asked.Old.MappingAt("metadata"))
		if !own {
			return false
		}
		isOwn = count > 0
	}
	// Names show which annotations belong to the operator. A status does not, so it depends on the user.
	if slices.Contains(changed, "status") {
		return o.isOperatorUser(ctx, asked)
	}
	// A request for the status subresource cannot change the metadata.
	return isOwn && asked.Subresource == ""
}

// isOperatorUser reports whether the request comes from the operator's user.
func (o OwnWrites) isOperatorUser(ctx context.Context, asked *handlers.AdmissionRequest) bool {
	// An unknown user must not equal an unknown sender.
	sender := asked.User.StringAt("username")
	return sender != "" && o.UserName != nil && o.UserName(ctx) == sender
}

// logRefusals logs the handlers that deny a request of the operator itself. The operator cannot continue with the
// object then, and the API server's error only contains the name of a webhook.
func (o OwnWrites) logRefusals(ctx context.Context, r *activeReview) {
	for _, a := range r.attempts {
		if a.Outcome.Err != nil && o.isOperatorUser(ctx, r.request.admission) {
			logging.Warn(logf.FromContext(ctx), "Operator's own admission handler refuses a write of the operator",
				"handler", a.Call.Handler.ID, "operation", r.request.admission.Operation, "why", a.Outcome.Err.Error())
		}
	}
}

// countOwnChanges returns how many annotations and finalizers of the operator have changed. It returns false if
// anything else has changed.
func (o OwnWrites) countOwnChanges(now, old map[string]any) (count int, own bool) {
	for _, key := range differingKeys(now, old, diff.Equal) {
		switch {
		case slices.Contains(systemFields, key):
		case key == "annotations":
			changed := differingKeys(asMapping(now[key]), asMapping(old[key]), diff.Equal)
			if !o.ownsAnnotations(changed) {
				return 0, false
			}
			count += len(changed)
		case key == "finalizers":
			if !o.ownsFinalizers(now[key], old[key], old["deletionTimestamp"] != nil) {
				return 0, false
			}
			count++
		default:
			// Any other change needs a review.
			return 0, false
		}
	}
	return count, true
}

// ownsAnnotations reports whether all names have one of the operator's prefixes.
func (o OwnWrites) ownsAnnotations(names []string) bool {
	for _, name := range names {
		if prefix, _, found := strings.Cut(name, "/"); !found || !slices.Contains(o.Prefixes, prefix) {
			return false
		}
	}
	return true
}

// ownsFinalizers reports whether the lists differ only in the operator's finalizer or, for an object that is being
// deleted, only in removed finalizers.
func (o OwnWrites) ownsFinalizers(now, old any, deleting bool) bool {
	after, ok := asTexts(now)
	before, known := asTexts(old)
	if !ok || !known {
		return false
	}
	// Other controllers also remove their finalizers, and rejecting that would block the deletion.
	if deleting && len(after) < len(before) && sets.New(before...).HasAll(after...) {
		return true
	}
	isOwn := func(one string) bool { return o.Finalizer != "" && one == o.Finalizer }
	// Without the operator's finalizer, both lists must be the same, in the same order.
	return slices.Equal(slices.DeleteFunc(after, isOwn), slices.DeleteFunc(before, isOwn))
}

// changedFields returns the top-level fields that differ between two states of an object. It compares the texts: the
// same encoder has written both, so nothing has to be decoded, even for large objects.
func changedFields(now, old *jsontext.LazyObject) []string {
	return differingKeys(topLevelFields(now.Text()), topLevelFields(old.Text()), bytes.Equal)
}

// topLevelFields returns the texts of an object's fields. Keys with escapes are not decoded.
func topLevelFields(text []byte) map[string][]byte {
	fields := map[string][]byte{}
	jsontext.EachMember(text, func(m jsontext.RawMember) { fields[string(m.Key)] = m.Value })
	return fields
}

// differingKeys returns the keys with different values, and those that only one of the mappings has.
func differingKeys[V any](now, old map[string]V, equal func(a, b V) bool) (keys []string) {
	for key, value := range now {
		if former, found := old[key]; !found || !equal(value, former) {
			keys = append(keys, key)
		}
	}
	for key := range old {
		if _, found := now[key]; !found {
			keys = append(keys, key)
		}
	}
	return keys
}

// asMapping returns the value as a mapping, or nil.
func asMapping(value any) map[string]any { mapping, _ := value.(map[string]any); return mapping }

// asTexts returns the elements of a list of texts. A missing list is empty.
func asTexts(value any) (texts []string, ok bool) {
	list, isList := value.([]any)
	for _, one := range list {
		text, isText := one.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, isList || value == nil
}
