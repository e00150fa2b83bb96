package memapi

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// nonResourceSegments lists the first segments of paths of the real server that are not about objects.
var nonResourceSegments = []string{"healthz", "livez", "readyz", "metrics", "logs", "openapi", ".well-known", "openid"}

// missingPathError returns the error for a path that is not served. It distinguishes features that the real server has
// from paths that it does not serve either.
func (s *Server) missingPathError(t target, parts []string) error {
	d := s.schemas[t.groupResource()]
	own := t.Plural != "" && isKubernetesResource(t)
	switch {
	case t.Plural == "" && slices.Contains(nonResourceSegments, parts[0]) && len(parts) < 4:
		return unsupportedError("the path /%s", strings.Join(parts, "/"))
	case t.Kind == "" && own:
		return notInstalled(t)
	case t.Kind == "" || t.subresource == "" || t.subresource == "status":
		return notServed()
	case d != nil:
		return notFound(t) // like the real server, with the object's name even if the object exists
	case !t.Plain && !own:
		return notServed() // the real server does not serve it either
	default:
		return unsupportedError("the subresource %s of %s", t.subresource, t.Plural)
	}
}

// isKubernetesResource reports whether the resource is one of Kubernetes itself, installed here or not.
func isKubernetesResource(t target) bool {
	for kind := range scheme.Scheme.KnownTypes(t.groupVersion()) {
		// The plural is guessed from the kind, as the scheme only knows kinds.
		plural, _ := meta.UnsafeGuessKindToResource(t.groupVersion().WithKind(kind))
		if plural.Resource == t.Plural {
			return true
		}
	}
	return false
}

// notInstalled returns a "not found" error, like that for any other resource that is not served, with a message that
// names the remedy.
func notInstalled(t target) error {
	refused := apierrors.NewNotFound(schema.GroupResource{Group: t.Group, Resource: t.Plural}, t.name)
	refused.ErrStatus.Message = "the API server in memory does not serve " + t.Plural + " of " +
		t.groupVersion().String() + ": install them with Server.Install"
	refused.ErrStatus.Details = nil
	return refused
}
