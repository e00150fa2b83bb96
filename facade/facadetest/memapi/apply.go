package memapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// applyPatchType is the content type of a server-side apply.
const applyPatchType = "application/apply-patch+yaml"

// applyDeclaration merges the fields that a field manager declares into the object, or creates the object. Lists and
// maps are merged as the schema says, and for built-in kinds as client-go's types say. For a kind without a schema, a
// list is one atomic value.
func (s *Server) applyDeclaration(t target, query url.Values, data []byte) (map[string]any, error) {
	declared, err := decodeYAML(data)
	if err != nil {
		return nil, err
	}
	if name, _ := metadataOf(declared)["name"].(string); name != "" && name != t.name {
		return nil, t.otherName(name)
	}
	before, exists := s.objects[t.groupResource()][t.objectKey()]
	// A uid in the declaration means that the object must exist. The real server returns a conflict here, not a "not
	// found".
	if uid := metadataOf(declared)["uid"]; uid != nil && !exists {
		return nil, apierrors.NewConflict(t.qualifiedName(), t.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %v, and no existing object was found", uid,
		))
	}
	// A new object starts with its name alone, so that the merge computes the ownership of all other fields.
	live := t.withKind(map[string]any{"metadata": map[string]any{"name": t.name, "namespace": t.namespace}})
	if exists {
		live = t.servedObject(before)
		// Objects get managed fields with their first apply; the ownership before it is reconstructed.
		if metadataOf(live)["managedFields"] == nil {
			if metadataOf(live)["managedFields"], err = s.reconstructManagedFields(t, before); err != nil {
				return nil, err
			}
		}
	}
	books, err := s.fieldManager(t)
	if err != nil {
		return nil, err
	}
	// Conflicts with other managers are reported here, unless the request is forced.
	merged, err := books.Apply(
		&unstructured.Unstructured{Object: t.withoutUntypedStatus(live)}, &unstructured.Unstructured{Object: declared},
		query.Get("fieldManager"), query.Get("force") == "true",
	)
	if err != nil {
		return nil, err
	}
	object := contentOf(merged)
	// The merge has computed the ownership of all fields already; the write below must not compute it a second time.
	t.managedFields = metadataOf(object)["managedFields"]
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if !exists {
		// The same checks apply as for a creation by POST. If another client creates the object during a review, it is
		// merged with that one instead.
		if object, err = s.createObject(t, document); apierrors.IsAlreadyExists(err) {
			err = errChangedInReview
		}
		return object, err
	}
	// Parsing drops unknown fields and sets defaults, as for an update.
	if object, err = t.parseObject(document); err != nil {
		return nil, err
	}
	return s.replaceObject(t, before, object)
}

// decodeYAML decodes the body of an apply. JSON is valid YAML, so it accepts both.
func decodeYAML(data []byte) (map[string]any, error) {
	var declared map[string]any
	document, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = json.Unmarshal(document, &declared)
	}
	if err != nil || declared == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return declared, nil
}

// managerOf returns the field manager of a request: the parameter fieldManager, or the program's name from the
// User-Agent header, as in the real server.
func managerOf(r *http.Request) string {
	if given := r.URL.Query().Get("fieldManager"); given != "" {
		return given
	}
	// Only the part before the version counts, such as "kubectl" of "kubectl/v1.36".
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	return program
}
