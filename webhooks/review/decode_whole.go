package review

import (
	"cmp"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// whole is a review with what is needed of it. The objects are kept as texts, which Go types are decoded from.
type whole struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID      types.UID `json:"uid"`
		Resource struct {
			Group    string `json:"group"`
			Version  string `json:"version"`
			Resource string `json:"resource"`
		} `json:"resource"`
		Operation   string          `json:"operation"`
		Subresource string          `json:"subResource"`
		Name        string          `json:"name"`
		Namespace   string          `json:"namespace"`
		DryRun      bool            `json:"dryRun"`
		User        map[string]any  `json:"userInfo"`
		Object      json.RawMessage `json:"object"`
		Old         json.RawMessage `json:"oldObject"`
	} `json:"request"`
}

// decodeWhole reads a review at once; nil is one that is not as it must be, or that may be meant otherwise.
func decodeWhole(in Request) *request {
	var review whole
	if kjson.UnmarshalCaseSensitivePreserveInts(in.Body, &review) != nil {
		return nil
	}
	version, asked := cmp.Or(review.APIVersion, v1), &review.Request
	known := (version == v1 || version == v1beta) && review.Kind == kind
	if !known || asked.UID == "" || asked.Resource.Version == "" || asked.Resource.Resource == "" || asked.User == nil {
		return nil
	}
	out := &request{
		apiVersion: version, uid: asked.UID, resource: schema.GroupVersionResource(asked.Resource),
		admission: &handlers.Admission{
			ID: in.Hint, Type: in.Type, Operation: asked.Operation, Subresource: asked.Subresource,
			Name: asked.Name, Namespace: asked.Namespace, DryRun: asked.DryRun, User: asked.User,
			ObjectJSON: asked.Object, OldJSON: asked.Old, Headers: in.Headers, PeerCertificates: in.PeerCertificates,
		},
	}
	read := object(asked.Object, &out.admission.Object) && object(asked.Old, &out.admission.Old)
	if !read || out.body() == nil {
		return nil
	}
	return out
}

// object reads an object, or nothing.
func object(text []byte, into *map[string]any) bool {
	return len(text) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(text, into) == nil
}
