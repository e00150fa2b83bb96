package kopf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestObjectCommands shows that the commands set and remove the annotations of one object, find it by the words of
// kubectl, and report what happens next.
func TestObjectCommands(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	kubeconfig := serve(t, server)
	for _, c := range []struct {
		reason, args string
		code         int
		want         string // in either output
		key, value   string // of an annotation afterwards; the beginning of the value
	}{
		{"a failed object can be retried", "retry-object widget ns/w1", 0,
			"Widget.example.org ns/w1: the operator calls the handlers that have not succeeded",
			"handle-now", "failed:20"},
		{"all handlers can be called", "retry-object widgets.example.org w1 -n ns --all", 0, "as for a new object",
			"handle-now", "all:20"},
		{"a pause is an annotation", "pause-object Widget ns/w1", 0,
			"ns/w1 is paused: handlers that are running finish, others wait for resume-object; its deletion is handled",
			"paused", "true"},
		{"a pause can cover the deletion", "pause-object widget ns/w1 --deletion", 0, "its deletion waits as well",
			"paused", "deletion"},
		{"a retry of a paused object waits", "retry-object widget ns/w1", 0, "is paused: after resume-object",
			"handle-now", "failed:20"},
		{"a wait for the answer ends with an error that names the event that did not come",
			"retry-object widget ns/w1 --wait --timeout 10ms", 1, "waiting for the end of the pause; see explain: 10ms",
			"handle-now", "failed:20"},
		{"a wait reports the state of the object", "retry-object widget ns/w1 --wait --timeout 10ms", 1,
			"Widget.example.org ns/w1: waiting for the end of the pause\n", "handle-now", "failed:20"},
		{"resume removes the annotation", "resume-object widget ns/w1", 0, "is not paused any more", "paused", ""},
		{"resume without a pause is not an error", "resume-object widget ns/w1", 0, "was not paused", "paused", ""},
		{"other operators ignore the annotations", "resume-object widget ns/w1", 0, "", "kopf-managed", "yes"},
		{"an unknown kind is an error", "pause-object gadget ns/w1", 1, `does not serve a kind "gadget"`, "paused", ""},
		{"an unknown object is an error", "pause-object widget ns/w2", 1, `"w2" not found`, "paused", ""},
		{"a missing namespace is an error", "pause-object widget w1", 1, "is namespaced: use widget NAMESPACE/w1",
			"paused", ""},
		{"two namespaces are an error", "pause-object widget ns/w1 -n other", 2, "two namespaces: other and ns",
			"paused", ""},
		{"a missing name is an error", "resume-object widget", 2, "it needs a kind and a name", "paused", ""},
	} {
		args := append(strings.Fields(c.args), "--kubeconfig", kubeconfig)
		code, out, errs := execute(t, newWidgetOperator(), args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: %s: exit code %d, want %d, and %q in: %s%s",
				c.args, c.reason, code, c.code, c.want, out, errs)
		}
		metadata, _ := server.Object(widgetResource, "ns", "w1")["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		got, _ := annotations["test.example.org/"+c.key].(string)
		if !strings.HasPrefix(got, c.value) || c.value == "" && got != "" {
			t.Errorf("%s: %s: annotation %s is %q, want %q", c.args, c.reason, c.key, got, c.value)
		}
	}
}

// TestRetryWaits shows that the command waits for the answer, and that handlers that have failed again are an error.
func TestRetryWaits(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	kubeconfig := serve(t, server)
	for _, c := range []struct {
		reason, failures, want string
		code                   int
	}{
		{"an answer ends the command", "", "the handlers have finished", 0},
		{"failures are an error", `{"made":{"reason":"create","message":"no such region"}}`,
			"handlers have failed permanently: made: no such region", 1},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for answered := false; !answered && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
				server.Edit(widgetResource, "ns", "w1", func(object map[string]any) {
					metadata, _ := object["metadata"].(map[string]any)
					annotations, _ := metadata["annotations"].(map[string]any)
					request := annotations["test.example.org/handle-now"]
					if request == nil || request == annotations["test.example.org/handled-now"] {
						return
					}
					annotations["test.example.org/handled-now"], answered = request, true
					annotations["test.example.org/failed-handlers"] = c.failures
				})
			}
		}()
		code, out, errs := execute(t, newWidgetOperator(), "retry-object", "widget", "ns/w1", "--wait", "--kubeconfig",
			kubeconfig)
		<-done
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit code %d, want %d, and %q in: %s%s", c.reason, code, c.code, c.want, out, errs)
		}
	}
}
