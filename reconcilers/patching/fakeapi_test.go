package patching_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// fakeAPI serves one object of one resource to a real client, in the place of the network. It keeps the rules of the
// API server that the package depends on: the split of the status, the guards, versions, the end of a deleted object.
type fakeAPI struct {
	gvk           schema.GroupVersionKind
	plural        string
	clusterScoped bool
	hasStatus     bool
	knows         []string // the fields of the status that are kept; nil keeps all

	mu     sync.Mutex
	stored map[string]any // nil: there is no such object
	writes []apiWrite
	// Before the n-th write: changes by others, as merge-patches of the whole object; a function is more general.
	interferences []any
	interfere     func(n int)
	// Instead of the answer to the n-th write, an HTTP status or a whole Status; nil or absent is to serve it.
	failures []any
	// Instead of the answer to all reads.
	failGet int
	reads   int
}

type apiWrite struct {
	URL     string
	Type    string
	Payload any
	Status  int
	Manager string
	Before  map[string]any `json:"-"` // the object that the request came upon; nil if there was none
}

func (f *fakeAPI) client(t *testing.T) client.Client {
	t.Helper()
	scope, mapper := meta.RESTScopeNamespace, meta.NewDefaultRESTMapper(nil)
	if f.clusterScoped {
		scope = meta.RESTScopeRoot
	}
	gvr := f.gvk.GroupVersion().WithResource(f.plural)
	mapper.AddSpecific(f.gvk, gvr, gvr, scope)
	config := &rest.Config{Host: "http://api", Transport: f, QPS: -1}
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return c
}

func (f *fakeAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	answer := f.serve(req)
	code := http.StatusOK
	if status, ok := answer.(*metav1.Status); ok {
		code = int(status.Code)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": []string{"application/json"}}
	return &http.Response{
		StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewReader(data)), Request: req,
	}, nil
}

func (f *fakeAPI) serve(req *http.Request) any {
	if req.Method == http.MethodGet {
		f.reads++
		if f.failGet != 0 {
			return refusal(f.failGet)
		}
		if f.stored == nil || req.URL.Path != f.url() {
			return refusal(http.StatusNotFound)
		}
		return f.stored
	}
	n := len(f.writes)
	body, _ := io.ReadAll(req.Body)
	write := apiWrite{URL: req.URL.Path, Payload: decode(body), Manager: req.URL.Query().Get("fieldManager")}
	write.Type = map[string]string{
		"application/merge-patch+json": "merge", "application/json-patch+json": "json",
	}[req.Header.Get("Content-Type")]
	f.disturb(n)
	write.Before = f.stored
	answer := f.patch(n, write, body)
	if status, ok := answer.(*metav1.Status); ok {
		write.Status = int(status.Code)
	}
	f.writes = append(f.writes, write)
	return answer
}

func (f *fakeAPI) patch(n int, write apiWrite, body []byte) any {
	onStatus := strings.HasSuffix(write.URL, "/status")
	switch {
	case n < len(f.failures) && f.failures[n] != nil:
		if status, ok := f.failures[n].(*metav1.Status); ok {
			return status
		}
		return refusal(int(f.failures[n].(int64)))
	case f.stored == nil, onStatus && !f.hasStatus, strings.TrimSuffix(write.URL, "/status") != f.url():
		return refusal(http.StatusNotFound)
	}
	patched, err := patchDocument(f.stored, write.Type, body)
	if err != nil {
		return refusal(http.StatusUnprocessableEntity)
	}
	if refused := f.guard(patched, onStatus); refused != nil {
		return refused
	}
	return f.store(patched, onStatus)
}

func (f *fakeAPI) disturb(n int) {
	if f.interfere != nil {
		f.interfere(n)
	}
	if f.stored == nil || n >= len(f.interferences) || f.interferences[n] == nil {
		return
	}
	body, _ := json.Marshal(f.interferences[n])
	changed, err := patchDocument(f.stored, "merge", body)
	if err != nil {
		panic(err)
	}
	f.commit(changed)
}

// guard checks what a client may not change: the identity and the version it names, and finalizers under deletion.
func (f *fakeAPI) guard(patched map[string]any, onStatus bool) *metav1.Status {
	held, fresh := f.stored["metadata"].(map[string]any), patched["metadata"].(map[string]any)
	if !cmp.Equal(held["resourceVersion"], fresh["resourceVersion"]) {
		return refusal(http.StatusConflict)
	}
	if onStatus {
		return nil
	}
	if !cmp.Equal(held["uid"], fresh["uid"]) {
		return invalid("metadata.uid")
	}
	before, _ := held["finalizers"].([]any)
	after, _ := fresh["finalizers"].([]any)
	if held["deletionTimestamp"] != nil && len(after) > len(before) {
		return invalid("metadata.finalizers")
	}
	return nil
}

func (f *fakeAPI) store(patched map[string]any, onStatus bool) any {
	next := map[string]any{}
	source, status := patched, f.stored
	if onStatus {
		source, status = f.stored, patched
	}
	for key, value := range source {
		next[key] = value
	}
	if f.hasStatus {
		delete(next, "status")
		if value, ok := status["status"]; ok {
			next["status"] = f.pruned(value)
		}
	}
	metadata := next["metadata"].(map[string]any)
	left, _ := metadata["finalizers"].([]any)
	_, graceful := metadata["deletionGracePeriodSeconds"]
	if metadata["deletionTimestamp"] != nil && len(left) == 0 && !graceful {
		f.stored = nil
		return next
	}
	f.commit(next)
	return f.stored
}

func (f *fakeAPI) pruned(status any) any {
	held, mapping := status.(map[string]any)
	if f.knows == nil || !mapping {
		return status
	}
	kept := map[string]any{}
	for key, value := range held {
		if slices.Contains(f.knows, key) {
			kept[key] = value
		}
	}
	return kept
}

// commit gives a new version to what has changed, and only to that.
func (f *fakeAPI) commit(next map[string]any) {
	if cmp.Equal(f.stored, next) {
		return
	}
	next = decode(encode(next)).(map[string]any)
	metadata := next["metadata"].(map[string]any)
	held, _ := f.stored["metadata"].(map[string]any)["resourceVersion"].(string)
	number, _ := strconv.Atoi(held)
	metadata["resourceVersion"] = strconv.Itoa(number + 1)
	f.stored = next
}

func (f *fakeAPI) url() string {
	prefix := "/apis/" + f.gvk.Group
	if f.gvk.Group == "" {
		prefix = "/api"
	}
	metadata, _ := f.stored["metadata"].(map[string]any)
	if namespace, ok := metadata["namespace"].(string); ok && !f.clusterScoped {
		return fmt.Sprintf("%s/%s/namespaces/%s/%s/%s", prefix, f.gvk.Version, namespace, f.plural, metadata["name"])
	}
	return fmt.Sprintf("%s/%s/%s/%s", prefix, f.gvk.Version, f.plural, metadata["name"])
}

func patchDocument(doc map[string]any, kind string, patch []byte) (map[string]any, error) {
	var out []byte
	var err error
	switch kind {
	case "merge":
		out, err = evanphx.MergePatch(encode(doc), patch)
	case "json":
		var operations evanphx.Patch
		if operations, err = evanphx.DecodePatch(patch); err == nil {
			out, err = operations.Apply(encode(doc))
		}
	default:
		err = fmt.Errorf("unknown type of patch %q", kind)
	}
	if err != nil {
		return nil, err
	}
	return decode(out).(map[string]any), nil
}

func refusal(code int) *metav1.Status {
	reason := map[int]metav1.StatusReason{
		403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
		409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid,
	}[code]
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: http.StatusText(code),
	}
}

func invalid(field string) *metav1.Status {
	status := refusal(http.StatusUnprocessableEntity)
	status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Field: field}}}
	return status
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func decode(data []byte) any {
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		panic(err)
	}
	return out
}
