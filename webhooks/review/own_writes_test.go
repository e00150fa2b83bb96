package review_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

const (
	ownPrefix    = "op.example.org"
	ownFinalizer = "op.example.org/finalizer"
	ownUser      = "system:serviceaccount:ns:op"
)

// newDenyingReviewer returns a reviewer of an operator with a handler that denies every request.
func newDenyingReviewer(user string) *review.Reviewer {
	h := &handlers.Handler{ID: "guard", Family: handlers.Admitting, ReadsText: true, Subresource: "*"}
	h.Call = func(context.Context, *handlers.Invocation) error { return errors.New("no") }
	reviewer := newReviewer(h)
	reviewer.OwnWrites = func() review.OwnWrites {
		return review.OwnWrites{
			Prefixes: []string{ownPrefix}, Finalizer: ownFinalizer,
			UserName: func(context.Context) string { return user },
		}
	}
	return reviewer
}

// objectWithChanges returns an object with changes; a nil removes a field.
func objectWithChanges(metadata, fields map[string]any) map[string]any {
	own := map[string]any{"name": "kex1", "resourceVersion": "1", "annotations": map[string]any{"user": "a"}}
	object := map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "spec": map[string]any{"a": 1}}
	for key, value := range metadata {
		set(own, key, value)
	}
	object["metadata"] = own
	for key, value := range fields {
		set(object, key, value)
	}
	return object
}

func annotated(more ...string) map[string]any {
	all := map[string]any{"user": "a"}
	for _, name := range more {
		all[name] = "x"
	}
	return map[string]any{"annotations": all}
}

func held(deleting bool, finalizers ...any) map[string]any {
	metadata := map[string]any{"finalizers": finalizers}
	if deleting {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	return metadata
}

func status(value any) map[string]any { return map[string]any{"status": map[string]any{"a": value}} }

// TestOwnWrites shows which updates count as the operator's own, so that its handlers do not judge them:
// D-own-writes.
func TestOwnWrites(t *testing.T) {
	const person, operator = "ann", ownUser
	type object = map[string]any
	tests := map[string]struct {
		reason   string
		sender   string
		old, now object
		admitted bool
	}{
		"no change": {"a write that changes nothing is not the operator's", operator,
			objectWithChanges(nil, nil), objectWithChanges(nil, nil), false},
		"managed fields": {"the API server sets them for any update", operator,
			objectWithChanges(nil, nil), objectWithChanges(object{"managedFields": []any{}, "resourceVersion": "2"},
				nil), false},
		"our annotations": {"a change of the operator's annotations is admitted", person,
			objectWithChanges(annotated(ownPrefix+"/a"), nil), objectWithChanges(annotated(ownPrefix+"/b"), nil), true},
		"all annotations": {"a missing mapping is an empty one", person,
			objectWithChanges(object{"annotations": nil}, nil),
			objectWithChanges(object{"annotations": object{ownPrefix + "/b": "x"}}, nil), true},
		"other annotations": {"another prefix is not the operator's", operator,
			objectWithChanges(nil, nil), objectWithChanges(annotated(ownPrefix+".evil/a"), nil), false},
		"both annotations": {"one foreign annotation is enough to call the handler", operator,
			objectWithChanges(nil, nil), objectWithChanges(annotated(ownPrefix+"/a", "b"), nil), false},
		"changed annotation": {"the user's annotation has another value", operator,
			objectWithChanges(nil, nil), objectWithChanges(object{"annotations": object{"user": "b",
				ownPrefix + "/a": "x"}}, nil), false},
		"our finalizer": {"adding the operator's finalizer is admitted", person,
			objectWithChanges(nil, nil), objectWithChanges(held(false, ownFinalizer), nil), true},
		"our finalizer goes": {"removing the operator's finalizer is admitted", person,
			objectWithChanges(held(false, "a/b", ownFinalizer), nil), objectWithChanges(held(false, "a/b"), nil), true},
		"other finalizer": {"another finalizer is not the operator's", operator,
			objectWithChanges(nil, nil), objectWithChanges(held(false, "a/b"), nil), false},
		"other finalizer goes": {"removing another finalizer without a deletion is judged", person,
			objectWithChanges(held(false, "a/b"), nil), objectWithChanges(held(false), nil), false},
		"deleted": {"finalizers of an object that is being deleted can always be removed", person,
			objectWithChanges(held(true, "a/b", "c/d"), nil), objectWithChanges(held(true, "c/d"), nil), true},
		"deleted with memory": {"the operator takes its memory off in the same write", person,
			objectWithChanges(object{"finalizers": []any{"a/b"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
				"annotations": object{"user": "a", ownPrefix + "/a": "x"}}, nil), objectWithChanges(held(true), nil),
			true},
		"deleted and added": {"an added finalizer is not a removed one", person,
			objectWithChanges(held(true, "a/b", "c/d"), nil), objectWithChanges(held(true, "e/f"), nil), false},
		"deleted and changed": {"the handler judges the rest of the update", operator,
			objectWithChanges(held(true, "a/b"), nil), objectWithChanges(held(true), object{"spec": object{"a": 2}}),
			false},
		"odd finalizers": {"a list of other values is not understood", operator,
			objectWithChanges(held(true, object{}, "b"), nil), objectWithChanges(held(true, object{}), nil), false},
		"labels": {"a change of labels is judged", operator,
			objectWithChanges(nil, nil), objectWithChanges(object{"labels": object{"a": "b"}}, nil), false},
		"spec": {"a change of the spec is judged", operator,
			objectWithChanges(nil, nil), objectWithChanges(annotated(ownPrefix+"/a"), object{"spec": object{"a": 2}}),
			false},
		"new field": {"an added field is a change", operator,
			objectWithChanges(nil, nil), objectWithChanges(annotated(ownPrefix+"/a"), object{"data": object{}}), false},
		"removed field": {"a removed field is a change", operator,
			objectWithChanges(nil, nil), objectWithChanges(annotated(ownPrefix+"/a"), object{"spec": nil}), false},
		"our status": {"a change of the status by the operator is admitted",
			operator, objectWithChanges(nil, nil), objectWithChanges(nil, status(1)), true},
		"our status and memory": {"a change of the status with annotations by the operator is admitted", operator,
			objectWithChanges(nil, status(1)), objectWithChanges(annotated(ownPrefix+"/a"), status(2)), true},
		"our status and labels": {"a change of the status with labels is judged", operator,
			objectWithChanges(nil, status(1)), objectWithChanges(object{"labels": object{"a": "b"}}, status(2)), false},
		"their status": {"a change of the status by another user is judged",
			person, objectWithChanges(nil, nil), objectWithChanges(nil, status(1)), false},
	}
	for name, tc := range tests {
		body := newReview(map[string]any{"request": map[string]any{
			"operation": "UPDATE", "oldObject": tc.old, "object": tc.now,
			"userInfo": map[string]any{"username": tc.sender},
		}})
		out, err := newDenyingReviewer(ownUser).Review(t.Context(), review.EndpointRequest{Body: body})
		if err != nil || out.Response.Allowed != tc.admitted || len(out.Response.Patch) > 0 {
			t.Errorf("%s: %s: want %t, got %+v, %v", name, tc.reason, tc.admitted, out.Response, err)
		}
		_, err = newDenyingReviewer(ownUser).Review(t.Context(),
			review.EndpointRequest{Body: body, ExceedsMemory: true})
		var refused *review.ResponseError
		isRefused := errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge
		if isRefused == tc.admitted || err != nil && !isRefused {
			t.Errorf("%s: too heavy to be decoded: want it admitted: %t, got %v", name, tc.admitted, err)
		}
	}
}

// TestOwnWritesAreUpdates shows that only updates count as own writes: all other requests are judged.
func TestOwnWritesAreUpdates(t *testing.T) {
	for reason, request := range map[string]map[string]any{
		"an object that is created with our annotations is judged": {
			"operation": "CREATE", "object": objectWithChanges(annotated(ownPrefix+"/a"), nil)},
		"a deletion is judged": {
			"operation": "DELETE", "object": nil, "oldObject": objectWithChanges(held(true, ownFinalizer), nil)},
		"an update without a former state is judged": {
			"operation": "UPDATE", "object": objectWithChanges(annotated(ownPrefix+"/a"), nil)},
		"an update of another subresource is judged, as it does not change the metadata": {
			"operation": "UPDATE", "subResource": "scale", "userInfo": map[string]any{"username": ownUser},
			"oldObject": objectWithChanges(nil, nil), "object": objectWithChanges(nil, status(1))},
	} {
		body := newReview(map[string]any{"request": request})
		out, err := newDenyingReviewer(ownUser).Review(t.Context(), review.EndpointRequest{Body: body})
		if err != nil || out.Response.Allowed {
			t.Errorf("%s: got %+v, %v", reason, out.Response, err)
		}
	}
}

// TestOwnWritesOfAnUnknownUser shows that changes of the status are judged if the operator's user is unknown.
func TestOwnWritesOfAnUnknownUser(t *testing.T) {
	body := newReview(map[string]any{"request": map[string]any{
		"operation": "UPDATE", "oldObject": objectWithChanges(nil, nil), "object": objectWithChanges(nil, status(1)),
		"userInfo": map[string]any{"groups": []any{"a"}},
	}})
	out, err := newDenyingReviewer("").Review(t.Context(), review.EndpointRequest{Body: body})
	if err != nil || out.Response.Allowed {
		t.Errorf("an empty name must not count as the operator's user: got %+v, %v", out.Response, err)
	}
}

// TestRefusedOwnWrite shows that the log names the handler that refuses a write of its own operator, as the error
// names a webhook only.
func TestRefusedOwnWrite(t *testing.T) {
	for sender, logged := range map[string]bool{ownUser: true, "ann": false} {
		var out bytes.Buffer
		log := logr.FromSlogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
		_, err := newDenyingReviewer(ownUser).Review(logf.IntoContext(t.Context(), log), review.EndpointRequest{
			Body: newReview(map[string]any{"request": map[string]any{
				"operation": "UPDATE", "oldObject": objectWithChanges(nil, nil),
				"object":   objectWithChanges(nil, map[string]any{"spec": nil}),
				"userInfo": map[string]any{"username": sender},
			}}),
		})
		refused := strings.Contains(out.String(), "own admission handler refuses")
		got := refused && strings.Contains(out.String(), "handler=guard")
		if err != nil || got != logged {
			t.Errorf("a write of %s: logged %t, want %t: %s, %v", sender, got, logged, out.String(), err)
		}
	}
}
