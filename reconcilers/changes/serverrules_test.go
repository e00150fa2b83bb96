package changes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// annotationsLimit is the API server's own limit, of keys and values together.
const annotationsLimit = 256 * 1024

// apply serves one PATCH request.
func (s *server) apply(w write, data []byte) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil || w.status && !s.statusSubresource {
		return nil, refusal(http.StatusNotFound)
	}
	patched, err := patchedBy(w.kind, s.object, data)
	if err != nil {
		return nil, refusal(http.StatusUnprocessableEntity)
	}
	if at(patched, "metadata", "resourceVersion") != at(s.object, "metadata", "resourceVersion") {
		return nil, refusal(http.StatusConflict)
	}
	next := s.separated(patched, w.status)
	if err := s.validate(next, patched); err != nil {
		return nil, err
	}
	return s.commit(next), nil
}

// separated lets each URL write its own part only.
func (s *server) separated(patched map[string]any, status bool) map[string]any {
	if !s.statusSubresource {
		return patched
	}
	from, statusFrom := patched, s.object
	if status {
		from, statusFrom = s.object, patched
	}
	next := maps.Clone(from)
	delete(next, "status")
	if value, ok := statusFrom["status"]; ok {
		next["status"] = value
	}
	return next
}

func (s *server) validate(next, patched map[string]any) error {
	if at(patched, "metadata", "uid") != at(s.object, "metadata", "uid") {
		return invalid("metadata.uid")
	}
	before, _ := at(s.object, "metadata", "finalizers").([]any)
	after, _ := at(next, "metadata", "finalizers").([]any)
	if at(s.object, "metadata", "deletionTimestamp") != nil && len(after) > len(before) {
		return invalid("metadata.finalizers")
	}
	size := 0
	annotations, _ := at(next, "metadata", "annotations").(map[string]any)
	for key, value := range annotations {
		text, ok := value.(string)
		if !ok {
			return invalid("metadata.annotations")
		}
		size += len(key) + len(text)
	}
	if size > annotationsLimit {
		return invalid("metadata.annotations")
	}
	if s.webhook != nil {
		s.webhook(next)
	}
	if s.schema != nil {
		return s.schema(next)
	}
	return nil
}

// commit stores what differs under a new version, and ends an object that nothing holds any more.
func (s *server) commit(next map[string]any) map[string]any {
	if cmp.Equal(s.object, next) {
		return copied(next)
	}
	next = copied(next)
	s.version++
	next["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	s.object = next
	held, _ := at(next, "metadata", "finalizers").([]any)
	if at(next, "metadata", "deletionTimestamp") != nil && len(held) == 0 {
		s.object = nil
	}
	return copied(next)
}

func patchedBy(kind string, object map[string]any, data []byte) (map[string]any, error) {
	var out []byte
	var err error
	switch types.PatchType(kind) {
	case types.MergePatchType:
		out, err = jsonpatch.MergePatch(encoded(object), data)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(data); err == nil {
			out, err = operations.Apply(encoded(object))
		}
	default:
		err = fmt.Errorf("unknown type of patch %q", kind)
	}
	if err != nil {
		return nil, err
	}
	return decoded(out).(map[string]any), nil
}

func refusal(code int32) *apierrors.StatusError {
	reasons := map[int32]metav1.StatusReason{
		403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
		409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid, 504: metav1.StatusReasonTimeout,
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reasons[code], Message: http.StatusText(int(code)),
	}}
}

func invalid(field string) *apierrors.StatusError {
	err := refusal(http.StatusUnprocessableEntity)
	err.ErrStatus.Details = &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field}},
	}
	return err
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func decoded(data []byte) any {
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		panic(err)
	}
	return out
}

func copied(body map[string]any) map[string]any { return decoded(encoded(body)).(map[string]any) }

// at resolves a path of keys; nil if there is no such place.
func at(body any, path ...string) any {
	for _, key := range path {
		mapping, _ := body.(map[string]any)
		body = mapping[key]
	}
	return body
}
