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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

var allClasses = []error{patching.ErrConflict, patching.ErrReplaced, patching.ErrRefused}

// checkClass wants exactly this class, or none of them for nil.
func checkClass(t *testing.T, reason string, want, err error) {
	t.Helper()
	for _, class := range allClasses {
		if errors.Is(err, class) != errors.Is(want, class) {
			t.Errorf("%s\nwant the class %v, got the error: %v", reason, want, err)
		}
	}
}

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
			reason: "What has no class still says what was done to which object.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{int64(500)} },
			text: "patching kopf.dev/v1 KopfExample ns1/kex1", sent: 1,
		},
		"StaleList": {
			reason: "The version in the patch is not the current one.",
			patch:  mergeList, serve: func(api *server) { api.interferences = []any{m{"spec": m{"z": "z"}}} },
			class: patching.ErrConflict, text: "patching kopf.dev/v1", sent: 1,
		},
		"StaleStatus": {
			reason: "The status goes first, so nothing else is sent.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": int64(2)}, "status": m{"s": int64(2)}}},
			serve:  func(api *server) { api.interferences = []any{m{"spec": m{"z": "z"}}} },
			class:  patching.ErrConflict, text: "patching the status of kopf.dev/v1", sent: 1,
		},
		"Conflict": {
			reason: "So is a 409 without a version in the patch.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{int64(409)} },
			class: patching.ErrConflict, sent: 1,
		},
		"Recreated": {
			reason: "The uid in the patch is not that of the object of this name.",
			patch:  mergeMain, serve: func(api *server) { api.interferences = []any{m{"metadata": m{"uid": "uid2"}}} },
			class: patching.ErrReplaced, sent: 1,
		},
		"InvalidContent": {
			reason: "Any other 422 is about the content, and will not pass next time.",
			patch:  mergeMain, serve: func(api *server) { api.failures = []any{memapi.Refusal(422, "spec.n")} },
			class: patching.ErrRefused, sent: 1,
		},
		"FinalizerUnderDeletion": {
			reason: "The server takes no new finalizers on an object that is being deleted.",
			patch:  function, serve: func(api *server) { api.beDeleted() },
			class: patching.ErrRefused, sent: 1,
		},
		"RecreatedWithoutStatus": {
			reason: "The 404 of /status leads to a reading, and that to another object.",
			patch:  mergeStatus,
			serve: func(api *server) {
				api.serveStatus(false)
				api.edit(m{"metadata": m{"uid": "uid2"}})
			},
			class: patching.ErrReplaced, sent: 1,
		},
		"UnreadableWithoutStatus": {
			reason: "If it cannot be found out what a 404 of /status means, that is the error.",
			patch:  mergeStatus, serve: func(api *server) {
				api.serveStatus(false)
				api.failGet = 500
			},
			text: "reading kopf.dev/v1 KopfExample ns1/kex1", sent: 1,
		},
		"Unencodable": {
			reason: "What is not JSON is not sent.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": func() {}}}}, serve: func(*server) {},
			text: "encoding the patch of kopf.dev/v1 KopfExample ns1/kex1",
		},
		"FailedFunction": {
			reason: "A function's error names the object, too.",
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
			if got := !result.Remaining.Empty(); got != errors.Is(tc.class, patching.ErrConflict) {
				t.Errorf("%s\nonly a conflict leaves something to do: %v", tc.reason, result.Remaining)
			}
		})
	}
}

func TestStatusRefused(t *testing.T) {
	type m = map[string]any
	tooLarge := memapi.Refusal(413)
	cases := map[string]struct {
		reason  string
		failure any
		missing bool // no such subresource
		want    bool // refused, and the main resource written
		class   error
		text    string
	}{
		"Overload": {reason: "That will pass: the order of the writes is kept.", failure: int64(429)},
		"Broken":   {reason: "So will that.", failure: int64(503)},
		"Expired":  {reason: "And an expired login.", failure: int64(401)},
		"Conflict": {reason: "A conflict holds back the rest.", failure: int64(409)},
		"Invalid": {
			reason:  "The handlers' data must not block the object.",
			failure: memapi.Refusal(422, "status.s"), want: true, class: patching.ErrRefused,
		},
		"Forbidden": {reason: "A missing right for /status will not come by itself.", failure: int64(403), want: true},
		"TooLarge":  {reason: "Data again.", failure: tooLarge, want: true, class: patching.ErrRefused},
		"TooLargeForDatabase": {
			reason:  "The limit of the database is lower than that of the server.",
			failure: saying("etcdserver: request is too large"), want: true, class: patching.ErrRefused,
		},
		"Malformed": {reason: "It would be just as malformed the next time.", failure: int64(400), want: true},
		"Crashed":   {reason: "A server that fails may recover.", failure: int64(500)},
		"NoSubresource": {
			reason:  "The resource was declared with a status that is not served: the message says so.",
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
			if (err == nil) != tc.want || (result.StatusRefused != nil) != tc.want {
				t.Fatalf("%s\nwant it refused: %v; got %v, error %v", tc.reason, tc.want, result.StatusRefused, err)
			}
			if !tc.want {
				return
			}
			checkClass(t, tc.reason, tc.class, result.StatusRefused)
			if !strings.Contains(result.StatusRefused.Error(), tc.text) {
				t.Errorf("%s\nwant %q in the error: %v", tc.reason, tc.text, result.StatusRefused)
			}
			if !patching.HasFinalizer(api.stored(), "own") {
				t.Errorf("%s\nthe main resource was not written: %v", tc.reason, api.writes())
			}
			if api.stored()["status"].(m)["s"] != int64(1) {
				t.Errorf("%s\n/status was tried again: %v", tc.reason, api.writes())
			}
		})
	}
}

func TestHopeless(t *testing.T) {
	failing := patching.Contained([]patching.Transform{func(map[string]any) error { return errors.New("no") }})
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"A user's function fails again.":        {fmt.Errorf("patching: %w", failing[0](nil)), true},
		"The object will not come back.":        {fmt.Errorf("patching: %w", patching.ErrReplaced), true},
		"The content stays the same.":           {fmt.Errorf("patching: %w", patching.ErrRefused), true},
		"A right is missing until it is given.": {fmt.Errorf("patching: %w", memapi.Refusal(403)), true},
		"The next body may do.":                 {fmt.Errorf("patching: %w", patching.ErrConflict), false},
		"The server may recover.":               {fmt.Errorf("patching: %w", memapi.Refusal(503)), false},
		"Connections come back.":                {errors.New("connection refused"), false},
	} {
		if got := patching.Hopeless(tc.err); got != tc.want {
			t.Errorf("%s\n%v: got %v, want %v", reason, tc.err, got, tc.want)
		}
	}
}

// A body of a test, or of a part of an object, has no uid: it is not another object for that.
func TestMissingStatusOfAnObjectWithoutUID(t *testing.T) {
	api, body := serverOf(object()), object()
	api.serveStatus(false)
	delete(body["metadata"].(map[string]any), "uid")
	result, err := writerFor(api).Apply(
		t.Context(), patching.Target{Body: body, StatusSubresource: true},
		patching.Patch{Merge: map[string]any{"status": map[string]any{"b": int64(2)}}},
	)
	if err != nil || !errors.Is(result.StatusRefused, patching.ErrRefused) {
		t.Errorf("want the status refused, got %v with error %v", result.StatusRefused, err)
	}
}

// saying is an answer 500 with a text.
func saying(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text,
	}}
}

func TestTooLarge(t *testing.T) {
	const transport = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a success is not too large":                  {nil, false},
		"the server has a limit for requests":         {memapi.Refusal(413), true},
		"etcd has a lower one":                        {saying("etcdserver: request is too large"), true},
		"so does the connection to etcd":              {fmt.Errorf("patching: %w", saying(transport)), true},
		"a full database can be cleaned":              {saying("etcdserver: mvcc: database space exceeded"), false},
		"other limits of the connection can pass":     {saying("rpc error: code = ResourceExhausted"), false},
		"a server that fails may recover":             {saying("broken"), false},
		"only the answer of a server counts":          {errors.New("request is too large"), false},
		"another code with these words is of another": {memapi.Refusal(503), false},
	} {
		if got := patching.TooLarge(tc.err); got != tc.want {
			t.Errorf("%s: %v: got %v, want %v", reason, tc.err, got, tc.want)
		}
		if got := patching.ContentRefused(failureOf(t, tc.err)); got != tc.want {
			t.Errorf("%s: as the answer to a write: %v: refused: %v, want %v", reason, tc.err, got, tc.want)
		}
	}
}

// failureOf is the error of a write with this answer.
func failureOf(t *testing.T, answer error) error {
	api := serverOf(object())
	if answer != nil {
		api.failures = []any{answer}
	}
	target := patching.Target{Body: object(), StatusSubresource: true}
	_, err := writerFor(api).Apply(t.Context(), target, patching.Patch{Merge: annotate(nil)})
	return err
}

// TestStatusDecides is about callers that must know of a refused status before anything else is written.
func TestStatusDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		failure any
		class   error
		writes  int
	}{
		"Invalid":   {"refused content ends the write", memapi.Refusal(422, "status.s"), patching.ErrRefused, 1},
		"Malformed": {"so does a malformed one", int64(400), nil, 1},
		"Forbidden": {"a missing right does not depend on the content", int64(403), nil, 2},
		"Accepted":  {"otherwise all is written", nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.failures = []any{tc.failure}
			target := patching.Target{Body: object(), StatusSubresource: true, StatusDecides: true}
			patch := patching.Patch{Merge: map[string]any{
				"status": map[string]any{"s": int64(2)}, "spec": map[string]any{"n": int64(2)},
			}}
			result, err := writerFor(api).Apply(t.Context(), target, patch)
			checkClass(t, tc.reason, tc.class, err)
			if ended := tc.writes == 1; ended != (err != nil) || ended && !errors.Is(err, result.StatusRefused) {
				t.Errorf("%s: error %v, refused status %v", tc.reason, err, result.StatusRefused)
			}
			if got := len(api.writes()); got != tc.writes {
				t.Errorf("%s: %d writes, want %d", tc.reason, got, tc.writes)
			}
		})
	}
}

// TestReleases is about a write that takes a finalizer from an object that is being deleted: the status is first, and
// nothing that comes of it holds back the rest.
func TestReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		serve   func(api *server)
		refused bool
	}{
		"Broken":      {"the server may fail", func(api *server) { api.failures = []any{int64(500)} }, true},
		"Overloaded":  {"or have too much to do", func(api *server) { api.failures = []any{int64(429)} }, true},
		"Unreachable": {"or give no answer", func(api *server) { api.failures = []any{memapi.ErrCut} }, true},
		"Unreadable": {"or not say what its answer means", func(api *server) {
			api.serveStatus(false)
			api.failGet = 500
		}, true},
		"Conflict": {"after a conflict, both are tried again", func(api *server) {
			api.interferences = []any{map[string]any{"spec": map[string]any{"z": "z"}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body := object()
			body["metadata"].(map[string]any)["finalizers"] = []any{"own"}
			api := serverOf(body)
			api.beDeleted()
			seen := api.stored()
			tc.serve(api)
			target := patching.Target{Body: seen, StatusSubresource: true}
			patch := patching.Patch{
				Merge:      map[string]any{"status": map[string]any{"s": int64(2)}},
				Transforms: []patching.Transform{patching.AllowDeletion("own")},
			}
			result, err := writerFor(api).ApplyRetrying(t.Context(), target, patch, nil)
			if err != nil || !result.Released || api.stored() != nil {
				t.Errorf("%s: error %v; it is still there: %v", tc.reason, err, api.stored())
			}
			if (result.StatusRefused != nil) != tc.refused {
				t.Errorf("%s: refused status: %v", tc.reason, result.StatusRefused)
			}
		})
	}
}
