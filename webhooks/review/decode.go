package review

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// The kind and the API versions of reviews. Both versions are decoded in the same way.
const (
	reviewKind    = "AdmissionReview"
	reviewV1      = "admission.k8s.io/v1"
	reviewV1beta1 = "admission.k8s.io/v1beta1"
)

// request is a decoded and valid review.
type request struct {
	// apiVersion is also that of the response.
	apiVersion string
	uid        types.UID
	resource   schema.GroupVersionResource
	admission  *handlers.AdmissionRequest
}

// objectLogger adds the object to the logger. The name and the namespace are not verified: the sender may not be an API
// server.
func (r *request) objectLogger(log logr.Logger, of discovery.Resource) logr.Logger {
	key := types.NamespacedName{Namespace: r.admission.Namespace, Name: r.admission.Name}
	uid := r.admission.ReviewedObject().StringAt("metadata", "uid")
	return logging.OfKindAndObject(log, of.GroupVersionKind, key, types.UID(uid))
}

// decodeReview decodes and validates a review. All fields that handlers rely on must be present, with the right type.
// The objects stay texts, because few handlers need them as maps.
func decodeReview(in EndpointRequest) (*request, error) {
	// The decoder below assumes valid JSON.
	if !json.Valid(in.Body) {
		return nil, fmt.Errorf("the review is not a JSON object: %w", json.Unmarshal(in.Body, new(any)))
	}
	// First, decode the envelope. As in Kopf, the API version and the kind are optional.
	var given string
	var of, asked []byte
	out, problems := &request{admission: &handlers.AdmissionRequest{
		ID: in.HandlerID, Type: in.Type, Headers: in.Headers, PeerCertificates: in.PeerCertificates,
	}}, problems(nil)
	isObject := problems.readFields(in.Body, "review", []field{
		{"apiVersion", &out.apiVersion}, {"kind", &given}, {"request", &asked},
	})
	if out.apiVersion = cmp.Or(out.apiVersion, reviewV1); !isObject {
		return nil, errors.New("the review is not a JSON object")
	}
	// Without a valid envelope, errors of the request would be misleading.
	if out.apiVersion != reviewV1 && out.apiVersion != reviewV1beta1 || cmp.Or(given, reviewKind) != reviewKind ||
		len(problems) > 0 {
		problems = append(problems, fmt.Errorf("it is no %s of %s or %s", reviewKind, reviewV1, reviewV1beta1))
		return nil, errors.Join(problems...)
	}
	// Then, decode the request. All its errors are reported at once.
	const name, resource = "review's request", "resource of the review's request"
	a := out.admission
	hasRequest := problems.readFields(asked, name, []field{
		{"uid", (*string)(&out.uid)}, {"resource", &of}, {"operation", &a.Operation}, {"subResource", &a.Subresource},
		{"name", &a.Name}, {"namespace", &a.Namespace}, {"dryRun", &a.DryRun}, {"userInfo", &a.User},
		{"object", &a.Object}, {"oldObject", &a.Old},
	})
	if !hasRequest {
		return nil, errors.New("the review has no request")
	}
	// The resource of the review decides which handlers are called, so it must be complete.
	problems.readFields(of, resource, []field{
		{"group", &out.resource.Group}, {"version", &out.resource.Version}, {"resource", &out.resource.Resource},
	})
	// Without a name, as with generateName, or a namespace, a request is valid.
	problems.requireField(name, "uid", out.uid != "")
	problems.requireField(resource, "version", out.resource.Version != "")
	problems.requireField(resource, "resource", out.resource.Resource != "")
	problems.requireField(name, "userInfo", a.User != nil)
	// DELETE has only the old object, CREATE only the new one.
	problems.requireField(name, "object, and no oldObject either", a.ReviewedObject() != nil)
	return out, errors.Join(problems...)
}

// field is one field of a JSON object, and the destination of its value: a *string, *bool, **jsontext.Object, or, for
// the text of an object, *[]byte.
type field struct {
	key    string
	target any
}

// problems collects the errors of a review.
type problems []error

// readFields decodes fields of a JSON object. The name of the object is for errors. The text must be valid JSON, or
// empty. It returns false if the text is not an object. A null counts as a missing field. If a field occurs several
// times, the last one counts, as in encoding/json.
func (p *problems) readFields(text []byte, name string, all []field) (isObject bool) {
	return jsontext.EachMember(text, func(m jsontext.RawMember) {
		i := slices.IndexFunc(all, func(f field) bool { return f.key == string(m.Key) })
		// Unknown fields are ignored, because newer API servers may add some.
		if i < 0 {
			return
		}
		// The first byte of valid JSON determines the type.
		given, wanted := jsonTypeOf(m.Value[0]), "an object"
		switch into := all[i].target.(type) {
		case *string:
			if *into, wanted = "", "a text"; given == wanted {
				_ = json.Unmarshal(m.Value, into) // the text is valid
			}
		case *bool:
			*into, wanted = m.Value[0] == 't', "a boolean"
		case **jsontext.LazyObject:
			if *into = nil; given == wanted {
				*into = jsontext.New(m.Value)
			}
		case *[]byte:
			*into = m.Value
		}
		// Like a missing field, a null leaves the zero value.
		if given != wanted && given != "null" {
			*p = append(*p, fmt.Errorf("%s of the %s must be %s, not %s", m.Key, name, wanted, given))
		}
	})
}

// requireField adds an error if a field is missing.
func (p *problems) requireField(name, what string, is bool) {
	if !is {
		*p = append(*p, fmt.Errorf("the %s has no %s", name, what))
	}
}

// jsonTypeOf returns the type of a JSON value by its first byte. Errors contain the type only, because values can be
// large.
func jsonTypeOf(first byte) string {
	switch first {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a text"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "a number"
	}
}
