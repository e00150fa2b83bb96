package reconcilers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// play is one step of the timeline. A change of an absent object does nothing.
func (r *cycleRun) play(ctx context.Context, step vectors.Fields, options reconcilers.Options) {
	switch op := step.Text("op", ""); op {
	case "add":
		r.server.Put(r.resource, r.original)
	case "patch":
		r.change(ctx, step.Mapping("patch"))
	case "delete":
		r.request(ctx, http.MethodDelete, nil)
	case "list", "echo":
		r.line.inject(r.object())
	case "stale":
		if r.object() == nil {
			return
		}
		stale := runtime.DeepCopyJSON(r.original)
		metadata, _ := stale["metadata"].(map[string]any)
		metadata["resourceVersion"] = "100"
		r.line.inject(stale)
	case "pause", "resume":
		r.gate.Set(op == "pause")
	case "exit":
		r.stop()
		r.stop = func() {}
	case "restart":
		r.stop()
		r.note(map[string]any{"what": "restarted"})
		r.start(ctx, options)
	default:
		r.t.Fatalf("the harness does not know the step %q", op)
	}
}

func (r *cycleRun) object() map[string]any { return r.server.Object(r.resource, r.namespace, r.name) }

// change is what others do to the whole object at once, its status included.
func (r *cycleRun) change(ctx context.Context, patch map[string]any) {
	object := r.object()
	if object == nil || patch == nil {
		return
	}
	if patch["status"] == nil || !r.resource.StatusSubresource {
		r.request(ctx, http.MethodPatch, patch)
		return
	}
	merge := patching.Patch{Merge: patch}
	changed, err := merge.ApplyTo(object)
	if err != nil {
		r.t.Errorf("changing the object: %v", err)
		return
	}
	r.server.Put(r.resource, changed)
}

// path is where the object is served.
func (r *cycleRun) path() string {
	path := "/apis/" + r.served.Group + "/" + r.served.Version
	if r.served.Group == "" {
		path = "/api/" + r.served.Version
	}
	if r.namespace != "" && r.served.Namespaced {
		path += "/namespaces/" + r.namespace
	}
	return path + "/" + r.served.Plural + "/" + r.name
}

func (r *cycleRun) request(ctx context.Context, method string, patch any) {
	data := ""
	if patch != nil {
		text, err := json.Marshal(patch)
		if err != nil {
			r.t.Errorf("encoding a patch: %v", err)
			return
		}
		data = string(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://mem"+r.path(), strings.NewReader(data))
	if err != nil {
		r.t.Errorf("making a request: %v", err)
		return
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := r.server.RoundTrip(request)
	if err != nil {
		r.t.Errorf("%s %s: %v", method, request.URL, err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode != http.StatusNotFound {
		r.t.Errorf("%s %s: %s", method, request.URL, response.Status)
	}
}
