package memapi

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// elsewhere are the paths of the real server that are not about objects.
var elsewhere = []string{"healthz", "livez", "readyz", "metrics", "logs", "openapi", ".well-known", "openid"}

// missing tells why nothing is served for a path: the real server may well have it.
func (s *Server) missing(t target, parts []string) error {
	d := s.schemas[t.groupResource()]
	own := t.Plural != "" && kubernetesOwn(t)
	switch {
	case t.Plural == "" && slices.Contains(elsewhere, parts[0]) && len(parts) < 4:
		return unsupported("the path /%s", strings.Join(parts, "/"))
	case t.Kind == "" && own:
		return notInstalled(t)
	case t.Kind == "" || t.subresource == "" || t.subresource == "status":
		return notServed()
	case d != nil:
		return notFound(t) // with the name of the object, whether it exists or not, as the real server does
	case !t.Plain && !own:
		return notServed() // nor does the real one
	default:
		return unsupported("the subresource %s of %s", t.subresource, t.Plural)
	}
}

// kubernetesOwn tells whether the real server has the resource, whatever is installed.
func kubernetesOwn(t target) bool {
	for kind := range scheme.Scheme.KnownTypes(t.groupVersion()) {
		plural, _ := meta.UnsafeGuessKindToResource(t.groupVersion().WithKind(kind))
		if plural.Resource == t.Plural {
			return true
		}
	}
	return false
}

// notInstalled is a refusal as that of any other resource that is not served, and says what to do.
func notInstalled(t target) error {
	refused := apierrors.NewNotFound(schema.GroupResource{Group: t.Group, Resource: t.Plural}, t.name)
	refused.ErrStatus.Message = "the API server in memory does not serve " + t.Plural + " of " +
		t.groupVersion().String() + ": tell it to with Server.Install"
	refused.ErrStatus.Details = nil
	return refused
}
