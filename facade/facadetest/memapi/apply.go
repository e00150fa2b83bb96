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

// applying is the form of a patch that is a server-side apply.
const applying = "application/apply-patch+yaml"

// apply merges what a field manager declares into the object, or makes one of it. Lists and mappings are merged as the
// schema says, and as client-go knows it of built-in kinds; for a kind without a schema, a list is one value.
func (s *Server) apply(t target, query url.Values, data []byte) (map[string]any, error) {
	declared, err := decodeYAML(data)
	if err != nil {
		return nil, err
	}
	if name, _ := metadataOf(declared)["name"].(string); name != "" && name != t.name {
		return nil, t.otherName(name)
	}
	before, exists := s.objects[t.groupResource()][t.key()]
	if uid := metadataOf(declared)["uid"]; uid != nil && !exists {
		return nil, apierrors.NewConflict(t.qualified(), t.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %v, and no existing object was found", uid,
		))
	}
	live := t.named(map[string]any{"metadata": map[string]any{"name": t.name, "namespace": t.namespace}})
	if exists {
		live = t.shown(before)
		if metadataOf(live)["managedFields"] == nil {
			if metadataOf(live)["managedFields"], err = s.recall(t, before); err != nil {
				return nil, err
			}
		}
	}
	books, err := s.managers(t)
	if err != nil {
		return nil, err
	}
	merged, err := books.Apply(
		&unstructured.Unstructured{Object: t.typed(live)}, &unstructured.Unstructured{Object: declared},
		query.Get("fieldManager"), query.Get("force") == "true",
	)
	if err != nil {
		return nil, err
	}
	object := contentOf(merged)
	t.managed = metadataOf(object)["managedFields"]
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if !exists {
		return s.create(t, document)
	}
	if object, err = t.parse(document); err != nil {
		return nil, err
	}
	return s.replace(t, before, object)
}

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

// managerOf is who sends a request that says nothing else: the program.
func managerOf(r *http.Request) string {
	if given := r.URL.Query().Get("fieldManager"); given != "" {
		return given
	}
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	return program
}
