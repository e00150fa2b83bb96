package review_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

func TestVectorsAdmissionReview(t *testing.T) {
	vectors.Run(t, "admission_review", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		got, err := reviewOfCase(t, input)
		if want.Failed(t, got, err) {
			return
		}
		wanted, is := statusIn(want.Value), statusIn(got)
		if vectors.SameText(wanted["message"], is["message"]) {
			is["message"] = wanted["message"]
		}
		if delta := cmp.Diff(withoutIrrelevantDifferences(want.Value), withoutIrrelevantDifferences(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

// statusIn returns the status of a denial in a result; empty without a denial.
func statusIn(result any) map[string]any {
	found, _ := diff.ResolvePath(result, diff.Path{"response", "response", "status"})
	if status, denied := found.(map[string]any); denied {
		return status
	}
	return map[string]any{}
}

// withoutIrrelevantDifferences returns the result of a review without differences that do not matter: the operations of
// a patch, whose effect counts, and the order of a diff.
func withoutIrrelevantDifferences(value any) any {
	out, _ := vectors.Normal(value, func(key string, value any) any {
		if items, is := value.([]any); is && key == "diff" {
			slices.SortFunc(items, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return value
	}).(map[string]any)
	delete(out, "ops")
	verdict, _ := diff.ResolvePath(out, diff.Path{"response", "response"})
	if verdict, is := verdict.(map[string]any); is {
		delete(verdict, "patch")
	}
	return out
}

// reviewOfCase serves the review of a case.
func reviewOfCase(t *testing.T, input vectors.Fields) (map[string]any, error) {
	vectors.Known(t, input, "handlers", "headers", "hint", "reason", "request", "resources")
	body, err := json.Marshal(input["request"])
	if err != nil {
		t.Fatal(err)
	}
	in := review.EndpointRequest{Body: body, Type: input.Text("reason", ""), Headers: http.Header{}}
	if hint, is := input["hint"].(string); is {
		in.HandlerID = &hint
	}
	for name, value := range input.Mapping("headers") {
		in.Headers[name] = []string{fmt.Sprint(value)}
	}
	calls := &calls{list: []any{}}
	served := servedBy(t, input, calls)
	reviewer := review.Reviewer{ServedResources: func() []review.ServedResource { return served }}
	response, err := reviewer.Review(t.Context(), in)
	if err != nil {
		return nil, err
	}
	got := map[string]any{"response": encodeResponse(t, response), "calls": calls.list}
	if response.Response.Patch != nil {
		got["patched_object"] = applyPatch(t, input, response.Response.Patch)
	}
	return got, nil
}

// servedBy returns the resources of the case, each with the handlers that select it.
func servedBy(t *testing.T, input vectors.Fields, calls *calls) (all []review.ServedResource) {
	resources := input.List("resources")
	if input["resources"] == nil {
		resources = []any{nil}
	}
	for _, one := range resources {
		served := review.ServedResource{Resource: declared.Resource(t, one)}
		declarations, err := declared.Handlers(t, input.List("handlers"), served.Resource)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range declarations {
			if d.Handler.Call = calls.recording(t, d.Options); d.Options["fn"] == nil {
				d.Handler.FunctionKey = d.Handler // a function of its own
			}
			if d.SelectsServed {
				served.Handlers = append(served.Handlers, adapters.New(d.Handler, nil))
			}
		}
		all = append(all, served)
	}
	return all
}

// calls records the calls of the handlers of a case.
type calls struct{ list []any }

// recording returns the function of a handler: it records its arguments and behaves as the case says.
func (c *calls) recording(t *testing.T, d vectors.Fields) handlers.Func {
	behave := vectors.Fields{}
	if d["behave"] != nil {
		behave = vectors.Known(
			t, d["behave"], "return", "raise", "message", "code", "delay", "patch", "fns", "warn",
		)
	}
	return func(_ context.Context, call *handlers.Invocation) error {
		c.list = append(c.list, handlerArguments(d, call))
		for _, warning := range behave.List("warn") {
			call.Admission.AddWarning(fmt.Sprint(warning))
		}
		call.Admission.AddMergePatch(behave.Mapping("patch"))
		for _, spec := range behave.List("fns") {
			edit, err := vectors.Edit(vectors.Known(t, spec, "fn", "path", "value"))
			if err == nil {
				err = call.Writer.AddTransform(edit)
			}
			if err != nil {
				return err
			}
		}
		if err := call.Writer.SetResult(behave["return"]); err != nil {
			return err
		}
		return errorOfCase(t, behave)
	}
}

// handlerArguments returns the arguments of a function under Kopf's names.
func handlerArguments(d vectors.Fields, call *handlers.Invocation) map[string]any {
	asked := call.Admission
	headers := map[string]any{}
	for name, values := range asked.Headers {
		headers[name] = values[0]
	}
	user, _ := asked.User.Value()
	name, _ := diff.ResolvePath(call.Cause.Body(), diff.Path{"metadata", "name"})
	namespace, _ := diff.ResolvePath(call.Cause.Body(), diff.Path{"metadata", "namespace"})
	return map[string]any{
		"id": declared.ID(d), "param": d["param"], "retry": int64(call.Retry), "name": name, "namespace": namespace,
		"dryrun": asked.DryRun, "operation": nullIfNil(asked.Operation),
		"subresource": nullIfNil(asked.Subresource), "userinfo": user, "headers": headers,
		"sslpeer": map[string]any{}, "body": call.Cause.Body(), "old": mappingOrNull(call.Cause.Old),
		"new": mappingOrNull(call.Cause.New), "diff": itemsOf(call.Cause),
	}
}

func nullIfNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func mappingOrNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

func itemsOf(c *cause.Cause) []any {
	list := []any{}
	for _, item := range c.Diff {
		path := []any{}
		for _, key := range item.Path {
			path = append(path, key)
		}
		list = append(list, []any{string(item.Op), path, item.Old, item.New})
	}
	return list
}

// denial is an error like Kopf's AdmissionError.
type denial struct {
	error
	code int32
}

func (d *denial) Status() metav1.Status { return metav1.Status{Code: d.code, Message: d.Error()} }

func errorOfCase(t *testing.T, behave vectors.Fields) error {
	if behave["raise"] != "admission" {
		return declared.Raise(t, behave)
	}
	d := &denial{error: errors.New(behave.Text("message", ""))}
	if code := vectors.Number(t, behave, "code"); code != nil {
		d.code = int32(*code)
	}
	return d
}

// encodeResponse returns a response as it is sent.
func encodeResponse(t *testing.T, response review.Response) (out map[string]any) {
	text, err := response.EncodeJSON()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// applyPatch returns the object as the API server patches it.
func applyPatch(t *testing.T, input vectors.Fields, operations []byte) (out map[string]any) {
	asked := input.Mapping("request").Mapping("request")
	object := asked["object"]
	if object == nil {
		object = asked["oldObject"]
	}
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err == nil {
		err = json.Unmarshal(after, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
