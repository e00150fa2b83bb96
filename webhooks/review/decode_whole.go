package review

import (
	"cmp"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// whole is a review with what is needed of it. The objects are kept as texts, which Go types are decoded from: few
// handlers need them as maps.
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
		User        json.RawMessage `json:"userInfo"`
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
	if !known || asked.UID == "" || asked.Resource.Version == "" || asked.Resource.Resource == "" {
		return nil
	}
	out := &request{
		apiVersion: version, uid: asked.UID, resource: schema.GroupVersionResource(asked.Resource),
		admission: &handlers.Admission{
			ID: in.Hint, Type: in.Type, Operation: asked.Operation, Subresource: asked.Subresource,
			Name: asked.Name, Namespace: asked.Namespace, DryRun: asked.DryRun,
			Headers: in.Headers, PeerCertificates: in.PeerCertificates,
		},
	}
	read := object(asked.User, &out.admission.User) &&
		object(asked.Object, &out.admission.Object) && object(asked.Old, &out.admission.Old)
	if !read || out.admission.User == nil || out.admission.Body() == nil {
		return nil
	}
	return out
}

// object takes the text of an object, or nothing. It is well-formed, as the review is.
func object(text []byte, into **jsontext.Object) bool {
	switch {
	case len(text) == 0 || string(text) == "null":
		return true
	case text[0] != '{':
		return false
	default:
		*into = jsontext.New(text)
		return true
	}
}
