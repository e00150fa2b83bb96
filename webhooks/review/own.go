package review

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// OwnWrites describes what the operator itself writes to the objects of its handlers. Such updates are admitted without
// calling a handler: a handler that refused them would keep an invalid object from being handled and deleted.
type OwnWrites struct {
	// Prefixes are the domains of the operator's annotations.
	Prefixes []string
	// Finalizer is the operator's; an empty one matches none.
	Finalizer string
	// User returns the name of the user that the operator's requests come from; empty if it is not known. It may ask
	// the API server. Nil is a user that is not known.
	User func(ctx context.Context) string
}

// systemFields of the metadata are set by the API server alone.
var systemFields = []string{"generation", "managedFields", "resourceVersion"}

// admit reports whether a request is an update of nothing but the operator's annotations and finalizer, whoever sends
// it; of these and the status, by the operator's own user; or, for an object that is being deleted, one that removes
// finalizers. An update that changes nothing is none of these. Subresources have neither annotations nor finalizers.
func (o OwnWrites) admit(ctx context.Context, asked *handlers.Admission) bool {
	covered := asked.Subresource == "" || asked.Subresource == "status"
	if asked.Operation != "UPDATE" || !covered || asked.Object == nil || asked.Old == nil {
		return false
	}
	changed, ok := changedFields(asked.Object, asked.Old)
	foreign := func(field string) bool { return field != "metadata" && field != "status" }
	if !ok || slices.ContainsFunc(changed, foreign) {
		return false
	}
	isOwn := false
	if slices.Contains(changed, "metadata") {
		count, own := o.countOwn(asked.Object.Mapping("metadata"), asked.Old.Mapping("metadata"))
		if !own {
			return false
		}
		isOwn = count > 0
	}
	if slices.Contains(changed, "status") {
		return o.isSender(ctx, asked)
	}
	return isOwn && asked.Subresource == ""
}

// isSender reports whether the request comes from the operator's own user.
func (o OwnWrites) isSender(ctx context.Context, asked *handlers.Admission) bool {
	sender := asked.User.String("username")
	return sender != "" && o.User != nil && o.User(ctx) == sender
}

// logRefusals names the handlers that deny a request of the operator's own user: the operator cannot go on with the
// object then, and the error of its write names only a webhook.
func (o OwnWrites) logRefusals(ctx context.Context, r *reviewing) {
	for _, a := range r.attempts {
		if a.Outcome.Err != nil && o.isSender(ctx, r.request.admission) {
			logging.Warn(logf.FromContext(ctx), "Operator's own admission handler refuses a write of the operator",
				"handler", a.Call.Handler.ID, "operation", r.request.admission.Operation, "why", a.Outcome.Err.Error())
		}
	}
}

// countOwn counts the changed annotations and finalizers of the metadata. It returns false if anything else differs.
func (o OwnWrites) countOwn(now, old map[string]any) (count int, own bool) {
	for _, key := range differingKeys(now, old) {
		switch {
		case slices.Contains(systemFields, key):
		case key == "annotations":
			changed := differingKeys(asMapping(now[key]), asMapping(old[key]))
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
			return 0, false
		}
	}
	return count, true
}

// ownsAnnotations reports whether all of them have one of the operator's prefixes.
func (o OwnWrites) ownsAnnotations(names []string) bool {
	for _, name := range names {
		if prefix, _, found := strings.Cut(name, "/"); !found || !slices.Contains(o.Prefixes, prefix) {
			return false
		}
	}
	return true
}

// ownsFinalizers reports whether the lists differ in the operator's finalizer alone, or, of an object that is being
// deleted, in finalizers that were removed.
func (o OwnWrites) ownsFinalizers(now, old any, deleting bool) bool {
	after, ok := asTexts(now)
	before, known := asTexts(old)
	if !ok || !known {
		return false
	}
	if deleting && len(after) < len(before) && sets.New(before...).HasAll(after...) {
		return true
	}
	isOwn := func(one string) bool { return o.Finalizer != "" && one == o.Finalizer }
	return slices.Equal(slices.DeleteFunc(after, isOwn), slices.DeleteFunc(before, isOwn))
}

// changedFields are the fields at the top of two states of an object that differ. Objects are compared as texts, as one
// encoder wrote both: nothing is decoded for that, however large they are. It returns false if that is not possible.
func changedFields(now, old *jsontext.Object) (keys []string, ok bool) {
	if !now.Encoded() || !old.Encoded() {
		after, wrong := now.Value()
		before, failed := old.Value()
		return differingKeys(after, before), wrong == nil && failed == nil
	}
	before, ok := topFields(old.Text())
	if !ok {
		return nil, false
	}
	after, ok := topFields(now.Text())
	for key, text := range after {
		if !bytes.Equal(text, before[key]) {
			keys = append(keys, key)
		}
		delete(before, key)
	}
	for key := range before {
		keys = append(keys, key)
	}
	return keys, ok
}

// topFields are the texts of an object's fields. Keys with escapes stay as they are written.
func topFields(text []byte) (fields map[string][]byte, whole bool) {
	fields = map[string][]byte{}
	whole = jsontext.Members(text, func(m jsontext.Member) { fields[string(m.Key)] = m.Value })
	return fields, whole
}

// differingKeys are those under which two mappings have different values, or only one has any.
func differingKeys(now, old map[string]any) (keys []string) {
	for key, value := range now {
		if former, found := old[key]; !found || !diff.Equal(value, former) {
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

func asMapping(value any) map[string]any { mapping, _ := value.(map[string]any); return mapping }

// asTexts are the elements of a list of texts; nothing is an empty one.
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
