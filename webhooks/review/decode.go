package review

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

const (
	kind   = "AdmissionReview"
	v1     = "admission.k8s.io/v1"
	v1beta = "admission.k8s.io/v1beta1"
)

// request is a review that is as it must be.
type request struct {
	apiVersion string
	uid        types.UID
	resource   schema.GroupVersionResource
	admission  *handlers.Admission
}

// logger adds the object. What the request says of it is not looked at by the API server if somebody else sends it.
func (r *request) logger(log logr.Logger, of discovery.Resource) logr.Logger {
	key := types.NamespacedName{Namespace: r.admission.Namespace, Name: r.admission.Name}
	uid := r.admission.Body().String("metadata", "uid")
	return logging.OfKindAndObject(log, of.GroupVersionKind, key, types.UID(uid))
}

// decode reads a review. All that handlers rely on must be there, and of its type.
func decode(in Request) (*request, error) {
	if out := decodeWhole(in); out != nil {
		return out, nil
	}
	return decodeParts(in)
}

// decodeParts reads a review field by field, to tell what is wrong with each.
func decodeParts(in Request) (*request, error) {
	var review map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(in.Body, &review); err != nil {
		return nil, fmt.Errorf("the review is no JSON object: %w", err)
	}
	envelope := fields{of: review, name: "review"}
	out := &request{apiVersion: envelope.text("apiVersion", v1)}
	known := (out.apiVersion == v1 || out.apiVersion == v1beta) && envelope.text("kind", kind) == kind
	if !known || envelope.wrong != nil {
		return nil, fmt.Errorf("it is no %s of %s or %s", kind, v1, v1beta)
	}
	asked := fields{of: envelope.mapping("request"), name: "review's request"}
	if asked.of == nil {
		return nil, errors.Join(append(envelope.wrong, errors.New("the review has no request"))...)
	}
	out.read(&asked, in)
	return out, errors.Join(asked.wrong...)
}

// read takes the request's fields, and keeps what is wrong with them.
func (r *request) read(asked *fields, in Request) {
	r.uid = types.UID(asked.needed("uid"))
	resource := fields{of: asked.mapping("resource"), name: "resource of the " + asked.name}
	r.resource = schema.GroupVersionResource{
		Group: resource.text("group", ""), Version: resource.needed("version"), Resource: resource.needed("resource"),
	}
	asked.wrong = append(asked.wrong, resource.wrong...)
	r.admission = &handlers.Admission{
		ID: in.Hint, Type: in.Type, Operation: asked.text("operation", ""), Subresource: asked.text("subResource", ""),
		Name: asked.text("name", ""), Namespace: asked.text("namespace", ""), DryRun: asked.flag("dryRun"),
		User: jsontext.Of(asked.mapping("userInfo")), Object: jsontext.Of(asked.mapping("object")),
		Old: jsontext.Of(asked.mapping("oldObject")), Headers: in.Headers, PeerCertificates: in.PeerCertificates,
	}
	if r.admission.User == nil {
		asked.lacks("userInfo")
	}
	if r.admission.Body() == nil {
		asked.lacks("object, and no oldObject either")
	}
}

// fields are those of one mapping. What is wrong with them is kept.
type fields struct {
	of    map[string]any
	name  string
	wrong []error
}

func (f *fields) lacks(what string) {
	f.wrong = append(f.wrong, fmt.Errorf("the %s has no %s", f.name, what))
}

// needed is a text that must be there.
func (f *fields) needed(key string) string {
	text := f.text(key, "")
	if given := f.of[key]; given == nil || given == "" {
		f.lacks(key)
	}
	return text
}

// text is otherwise if there is none.
func (f *fields) text(key, otherwise string) string {
	text, found := get[string](f, key, "a text")
	if !found {
		return otherwise
	}
	return text
}

func (f *fields) flag(key string) bool { flag, _ := get[bool](f, key, "a boolean"); return flag }

// mapping is nil if there is none.
func (f *fields) mapping(key string) map[string]any {
	mapping, _ := get[map[string]any](f, key, "an object")
	return mapping
}

// get is what stands under the key, if it is of the type. A null is as good as nothing.
func get[V any](f *fields, key, wanted string) (value V, found bool) {
	given := f.of[key]
	value, found = given.(V)
	if !found && given != nil {
		f.wrong = append(f.wrong, fmt.Errorf("%s of the %s must be %s, not %s", key, f.name, wanted, sortOf(given)))
	}
	return value, found
}

// sortOf names the type of a JSON value, which may be too large to be shown.
func sortOf(value any) string {
	switch value.(type) {
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
