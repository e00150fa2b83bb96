package patching_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

var allClasses = []error{patching.ErrConflict, patching.ErrReplaced, patching.ErrRefused}

// checkClass checks that the error is of this class only, or of none for nil.
func checkClass(t *testing.T, reason string, want, err error) {
	t.Helper()
	for _, class := range allClasses {
		if errors.Is(err, class) != errors.Is(want, class) {
			t.Errorf("%s\nwant the class %v, got the error: %v", reason, want, err)
		}
	}
}

// TestErrorClasses shows the class and the text of each error of a write.
func TestErrorClasses(t *testing.T) {
	type m = map[string]any
	mergeMain := patching.Patch{Merge: m{"spec": m{"n": int64(2)}}}
	mergeList := patching.Patch{Merge: m{"spec": m{"l": []any{"b"}}}}
	mergeStatus := patching.Patch{Merge: m{"status": m{"s": int64(2)}}}
	function := patching.Patch{Transforms: []patching.Transform{patching.BlockDeletion("own")}}
	cases := map[string]struct {
		reason string
		patch  patching.Patch
		serve  func(api *server)
		class  error
		text   string
		sent   int
	}{
		"Unreachable": {
			reason: "An error without a class names the operation and the object.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{int64(500)} },
			text: "patching kopf.dev/v1 KopfExample ns1/kex1", sent: 1,
		},
		"StaleList": {
			reason: "A list patch with an outdated version is a conflict.",
			patch:  mergeList, serve: func(api *server) { api.interferences = []any{m{"spec": m{"z": "z"}}} },
			class: patching.ErrConflict, text: "patching kopf.dev/v1", sent: 1,
		},
		"StaleStatus": {
			reason: "A conflict of the status, which is written first, stops the other write.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": int64(2)}, "status": m{"s": int64(2)}}},
			serve:  func(api *server) { api.interferences = []any{m{"spec": m{"z": "z"}}} },
			class:  patching.ErrConflict, text: "patching the status of kopf.dev/v1", sent: 1,
		},
		"Conflict": {
			reason: "A 409 is a conflict even if the patch does not have a version.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{int64(409)} },
			class: patching.ErrConflict, sent: 1,
		},
		"Recreated": {
			reason: "A uid that differs from the present one is reported as a replacement.",
			patch:  mergeMain, serve: func(api *server) { api.interferences = []any{m{"metadata": m{"uid": "uid2"}}} },
			class: patching.ErrReplaced, sent: 1,
		},
		"InvalidContent": {
			reason: "Any other 422 is a refusal of the content, which would fail again.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{memapi.NewRefusal(422, "spec.n")} },
			class: patching.ErrRefused, sent: 1,
		},
		"FinalizerUnderDeletion": {
			reason: "A new finalizer on an object in deletion is refused.",
			patch:  function, serve: func(api *server) { api.setDeletionTimestamp() },
			class: patching.ErrRefused, sent: 1,
		},
		"RecreatedWithoutStatus": {
			reason: "A 404 of /status leads to a read, which finds a replaced object.",
			patch:  mergeStatus,
			serve: func(api *server) {
				api.serveStatus(false)
				api.edit(m{"metadata": m{"uid": "uid2"}})
			},
			class: patching.ErrReplaced, sent: 1,
		},
		"UnreadableWithoutStatus": {
			reason: "A failed read after a 404 of /status is returned as the error.",
			patch:  mergeStatus, serve: func(api *server) {
				api.serveStatus(false)
				api.failGet = 500
			},
			text: "reading kopf.dev/v1 KopfExample ns1/kex1", sent: 1,
		},
		"Unencodable": {
			reason: "A value that cannot be encoded is an error, and nothing is sent.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": func() {}}}}, serve: func(*server) {},
			text: "encoding the patch of kopf.dev/v1 KopfExample ns1/kex1",
		},
		"FailedFunction": {
			reason: "The error of a function names the object.",
			patch: patching.Patch{
				Transforms: []patching.Transform{set([]string{"kind", "x"}, 1)},
			}, serve: func(*server) {},
			text: "patching kopf.dev/v1 KopfExample ns1/kex1: transforming",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			tc.serve(api)
			result, err := writerFor(
				api,
			).Apply(t.Context(), patching.Target{Body: object(), StatusSubresource: true}, tc.patch)
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%s\nwant an error with %q, got %v", tc.reason, tc.text, err)
			}
			checkClass(t, tc.reason, tc.class, err)
			var answer apierrors.APIStatus
			if tc.sent > 0 && !errors.As(err, &answer) {
				t.Errorf("%s\nthe server's error is not wrapped: %v", tc.reason, err)
			}
			if len(api.writes()) != tc.sent {
				t.Errorf("%s\nwant %d requests, got %v", tc.reason, tc.sent, api.writes())
			}
			if got := !result.Remaining.IsEmpty(); got != errors.Is(tc.class, patching.ErrConflict) {
				t.Errorf("%s\nonly a conflict may leave a remaining patch: %v", tc.reason, result.Remaining)
			}
		})
	}
}

// TestStatusRefused shows which refusals of the status stop the write of the main resource.
func TestStatusRefused(t *testing.T) {
	type m = map[string]any
	tooLarge := memapi.NewRefusal(413)
	cases := map[string]struct {
		reason  string
		failure any
		missing bool // the subresource is not served
		want    bool // the status is refused, and the main resource is written
		class   error
		text    string
	}{
		"Overload": {reason: "An overloaded server stops both writes, as it is temporary.", failure: int64(429)},
		"Broken":   {reason: "An unavailable server stops both writes, as it is temporary.", failure: int64(503)},
		"Expired":  {reason: "An expired login stops both writes, as it is temporary.", failure: int64(401)},
		"Conflict": {reason: "A conflict of the status stops the other write.", failure: int64(409)},
		"Invalid": {
			reason:  "An invalid status does not stop the other write.",
			failure: memapi.NewRefusal(422, "status.s"), want: true, class: patching.ErrRefused,
		},
		"Forbidden": {reason: "A missing right for /status does not stop the other write.",
			failure: int64(403), want: true},
		"TooLarge": {reason: "A status that is too large does not stop the other write.",
			failure: tooLarge, want: true, class: patching.ErrRefused},
		"TooLargeForDatabase": {
			reason:  "A status beyond the limit of etcd does not stop the other write.",
			failure: serverError("etcdserver: request is too large"), want: true, class: patching.ErrRefused,
		},
		"Malformed": {reason: "A malformed status does not stop the other write, as it would fail again.",
			failure: int64(400), want: true},
		"Crashed": {reason: "An internal error stops both writes, as it is temporary.", failure: int64(500)},
		"NoSubresource": {
			reason:  "A status subresource that is not served is reported, and the other write is done.",
			missing: true, want: true, class: patching.ErrRefused, text: "no /status subresource",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.failures = []any{tc.failure}
			api.serveStatus(!tc.missing)
			p := patching.Patch{
				Merge: annotate(m{"b": int64(2)}),
				Transforms: []patching.Transform{
					patching.BlockDeletion("own"), set([]string{"status", "s"}, int64(3)),
				},
			}
			result, err := writerFor(
				api,
			).Apply(t.Context(), patching.Target{Body: object(), StatusSubresource: true}, p)
			if (err == nil) != tc.want || (result.StatusRefusal != nil) != tc.want {
				t.Fatalf("%s\nwant refused %v; got %v, error %v", tc.reason, tc.want, result.StatusRefusal, err)
			}
			if !tc.want {
				return
			}
			checkClass(t, tc.reason, tc.class, result.StatusRefusal)
			if !strings.Contains(result.StatusRefusal.Error(), tc.text) {
				t.Errorf("%s\nwant %q in the error: %v", tc.reason, tc.text, result.StatusRefusal)
			}
			if !patching.HasFinalizer(api.stored(), "own") {
				t.Errorf("%s\nthe main resource was not written: %v", tc.reason, api.writes())
			}
			if api.stored()["status"].(m)["s"] != int64(1) {
				t.Errorf("%s\n/status was written again: %v", tc.reason, api.writes())
			}
		})
	}
}

// TestHopeless shows which errors would also occur in the next attempt.
func TestHopeless(t *testing.T) {
	failing := patching.ContainPanics([]patching.Transform{func(map[string]any) error { return errors.New("no") }})
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"A failing function of a user is hopeless.": {fmt.Errorf("patching: %w", failing[0](nil)), true},
		"A replaced object is hopeless.":            {fmt.Errorf("patching: %w", patching.ErrReplaced), true},
		"Refused content is hopeless.":              {fmt.Errorf("patching: %w", patching.ErrRefused), true},
		"A missing right is hopeless.":              {fmt.Errorf("patching: %w", memapi.NewRefusal(403)), true},
		"A conflict is not hopeless.":               {fmt.Errorf("patching: %w", patching.ErrConflict), false},
		"An unavailable server is not " +
			"hopeless.": {fmt.Errorf("patching: %w", memapi.NewRefusal(503)), false},
		"A broken connection is not hopeless.": {errors.New("connection refused"), false},
	} {
		if got := patching.IsHopeless(tc.err); got != tc.want {
			t.Errorf("%s\n%v: got %v, want %v", reason, tc.err, got, tc.want)
		}
	}
}

// TestMissingStatusOfAnObjectWithoutUID shows that a body without uid, as of a test, is not taken for another object.
func TestMissingStatusOfAnObjectWithoutUID(t *testing.T) {
	api, body := serverOf(object()), object()
	api.serveStatus(false)
	delete(body["metadata"].(map[string]any), "uid")
	result, err := writerFor(api).Apply(
		t.Context(), patching.Target{Body: body, StatusSubresource: true},
		patching.Patch{Merge: map[string]any{"status": map[string]any{"b": int64(2)}}},
	)
	if err != nil || !errors.Is(result.StatusRefusal, patching.ErrRefused) {
		t.Errorf("want the status refused, got %v with error %v", result.StatusRefusal, err)
	}
}

// serverError returns an internal server error with this text.
func serverError(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text,
	}}
}

// TestTooLarge shows which responses mean that the object is too large, and that these are refusals of the content.
func TestTooLarge(t *testing.T) {
	const transport = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a success is not too large":       {nil, false},
		"a 413 of the server is too large": {memapi.NewRefusal(413), true},
		"the limit of etcd is recognized by its " +
			"text": {serverError("etcdserver: request is too large"), true},
		"the limit of the connection to etcd is recognized by its " +
			"text": {fmt.Errorf("patching: %w", serverError(transport)), true},
		"a full database is not too large, as it can be " +
			"cleaned": {serverError("etcdserver: mvcc: database space exceeded"), false},
		"other limits of the connection are not too large": {serverError("rpc error: code = ResourceExhausted"), false},
		"any other internal error is not too large":        {serverError("broken"), false},
		"an error that is not a response of the server is not too " +
			"large": {errors.New("request is too large"), false},
		"another status code is not too large": {memapi.NewRefusal(503), false},
	} {
		if got := patching.IsTooLarge(tc.err); got != tc.want {
			t.Errorf("%s: %v: got %v, want %v", reason, tc.err, got, tc.want)
		}
		if got := patching.IsContentRefused(failureOf(t, tc.err)); got != tc.want {
			t.Errorf("%s: as the response to a write: %v: refused: %v, want %v", reason, tc.err, got, tc.want)
		}
	}
}

// failureOf returns the error of a write that gets this response.
func failureOf(t *testing.T, answer error) error {
	api := serverOf(object())
	if answer != nil {
		api.failures = []any{answer}
	}
	target := patching.Target{Body: object(), StatusSubresource: true}
	_, err := writerFor(api).Apply(t.Context(), target, patching.Patch{Merge: annotate(nil)})
	return err
}

// TestStatusDecides shows that with StopIfStatusRefused, refused content of the status ends the write, for callers that
// must know of it first.
func TestStatusDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		failure any
		class   error
		writes  int
	}{
		"Invalid": {"refused content of the status ends the write",
			memapi.NewRefusal(422, "status.s"), patching.ErrRefused, 1},
		"Malformed": {"a malformed status ends the write", int64(400), nil, 1},
		"Forbidden": {"a missing right for the status does not end the write", int64(403), nil, 2},
		"Accepted":  {"an accepted status is followed by the main write", nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.failures = []any{tc.failure}
			target := patching.Target{Body: object(), StatusSubresource: true, StopIfStatusRefused: true}
			patch := patching.Patch{Merge: map[string]any{
				"status": map[string]any{"s": int64(2)}, "spec": map[string]any{"n": int64(2)},
			}}
			result, err := writerFor(api).Apply(t.Context(), target, patch)
			checkClass(t, tc.reason, tc.class, err)
			if ended := tc.writes == 1; ended != (err != nil) || ended && !errors.Is(err, result.StatusRefusal) {
				t.Errorf("%s: error %v, refused status %v", tc.reason, err, result.StatusRefusal)
			}
			if got := len(api.writes()); got != tc.writes {
				t.Errorf("%s: %d writes, want %d", tc.reason, got, tc.writes)
			}
		})
	}
}

// TestReleases shows that a write that removes the finalizer of an object in deletion is completed even if the status
// cannot be written.
func TestReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		serve   func(api *server)
		refused bool
	}{
		"Broken": {"a server error for the status does not stop the release",
			func(api *server) { api.failures = []any{int64(500)} }, true},
		"Overloaded": {"an overload for the status does not stop the release",
			func(api *server) { api.failures = []any{int64(429)} }, true},
		"Unreachable": {"a broken connection for the status does not stop the release",
			func(api *server) { api.failures = []any{memapi.ErrCut} }, true},
		"Unreadable": {"a status error that cannot be interpreted does not stop the release", func(api *server) {
			api.serveStatus(false)
			api.failGet = 500
		}, true},
		"Conflict": {"a conflict of the status is retried with the release", func(api *server) {
			api.interferences = []any{map[string]any{"spec": map[string]any{"z": "z"}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body := object()
			body["metadata"].(map[string]any)["finalizers"] = []any{"own"}
			api := serverOf(body)
			api.setDeletionTimestamp()
			seen := api.stored()
			tc.serve(api)
			target := patching.Target{Body: seen, StatusSubresource: true}
			patch := patching.Patch{
				Merge:      map[string]any{"status": map[string]any{"s": int64(2)}},
				Transforms: []patching.Transform{patching.AllowDeletion("own")},
			}
			result, err := writerFor(api).ApplyRetrying(t.Context(), target, patch)
			if err != nil || !result.Released || api.stored() != nil {
				t.Errorf("%s: error %v; the object remains: %v", tc.reason, err, api.stored())
			}
			if (result.StatusRefusal != nil) != tc.refused {
				t.Errorf("%s: refused status: %v", tc.reason, result.StatusRefusal)
			}
		})
	}
}
