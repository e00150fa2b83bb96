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

// request is a valid review.
type request struct {
	apiVersion string
	uid        types.UID
	resource   schema.GroupVersionResource
	admission  *handlers.Admission
}

// logger adds the object. The name and the namespace of the request are not verified if the sender is not an API
// server.
func (r *request) logger(log logr.Logger, of discovery.Resource) logr.Logger {
	key := types.NamespacedName{Namespace: r.admission.Namespace, Name: r.admission.Name}
	uid := r.admission.Body().String("metadata", "uid")
	return logging.OfKindAndObject(log, of.GroupVersionKind, key, types.UID(uid))
}

// decode reads a review. All fields that handlers rely on must be there, and have the right type. The objects stay
// texts, because few handlers need them as maps.
func decode(in Request) (*request, error) {
	if !json.Valid(in.Body) {
		return nil, fmt.Errorf("the review is not a JSON object: %w", json.Unmarshal(in.Body, new(any)))
	}
	var given string
	var of, asked []byte
	out, problems := &request{admission: &handlers.Admission{
		ID: in.Hint, Type: in.Type, Headers: in.Headers, PeerCertificates: in.PeerCertificates,
	}}, problems(nil)
	isObject := problems.read(in.Body, "review", []field{
		{"apiVersion", &out.apiVersion}, {"kind", &given}, {"request", &asked},
	})
	if out.apiVersion = cmp.Or(out.apiVersion, v1); !isObject {
		return nil, errors.New("the review is not a JSON object")
	}
	if out.apiVersion != v1 && out.apiVersion != v1beta || cmp.Or(given, kind) != kind || len(problems) > 0 {
		problems = append(problems, fmt.Errorf("it is no %s of %s or %s", kind, v1, v1beta))
		return nil, errors.Join(problems...)
	}
	const name, resource = "review's request", "resource of the review's request"
	a := out.admission
	hasRequest := problems.read(asked, name, []field{
		{"uid", (*string)(&out.uid)}, {"resource", &of}, {"operation", &a.Operation}, {"subResource", &a.Subresource},
		{"name", &a.Name}, {"namespace", &a.Namespace}, {"dryRun", &a.DryRun}, {"userInfo", &a.User},
		{"object", &a.Object}, {"oldObject", &a.Old},
	})
	if !hasRequest {
		return nil, errors.New("the review has no request")
	}
	problems.read(of, resource, []field{
		{"group", &out.resource.Group}, {"version", &out.resource.Version}, {"resource", &out.resource.Resource},
	})
	problems.need(name, "uid", out.uid != "")
	problems.need(resource, "version", out.resource.Version != "")
	problems.need(resource, "resource", out.resource.Resource != "")
	problems.need(name, "userInfo", a.User != nil)
	problems.need(name, "object, and no oldObject either", a.Body() != nil)
	return out, errors.Join(problems...)
}

// field is one field of a JSON object, and where its value belongs: a *string, *bool, **jsontext.Object, or, for the
// text of an object, *[]byte.
type field struct {
	key  string
	into any
}

// problems are the errors of a review.
type problems []error

// read decodes fields of an object, whose name is for errors. The text is valid JSON, or empty. If that is not an
// object, it returns false. A null is like a missing field, and of several fields with one name, the last one counts.
func (p *problems) read(text []byte, name string, all []field) (isObject bool) {
	return jsontext.Members(text, func(m jsontext.Member) {
		i := slices.IndexFunc(all, func(f field) bool { return f.key == string(m.Key) })
		if i < 0 {
			return
		}
		given, wanted := sortOf(m.Value[0]), "an object"
		switch into := all[i].into.(type) {
		case *string:
			if *into, wanted = "", "a text"; given == wanted {
				_ = json.Unmarshal(m.Value, into) // it is valid
			}
		case *bool:
			*into, wanted = m.Value[0] == 't', "a boolean"
		case **jsontext.Object:
			if *into = nil; given == wanted {
				*into = jsontext.New(m.Value)
			}
		case *[]byte:
			*into = m.Value
		}
		if given != wanted && given != "null" {
			*p = append(*p, fmt.Errorf("%s of the %s must be %s, not %s", m.Key, name, wanted, given))
		}
	})
}

// need adds an error if a field is missing.
func (p *problems) need(name, what string, is bool) {
	if !is {
		*p = append(*p, fmt.Errorf("the %s has no %s", name, what))
	}
}

// sortOf names the type of a JSON value by its first character. The value may be too large to be shown.
func sortOf(first byte) string {
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
