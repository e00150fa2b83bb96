package reconcilers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Digests says of what only digests are kept on the objects. The zero value keeps all as it is.
type Digests struct {
	// Limit is how many bytes of JSON are kept by value; zero is no limit but that of the annotations.
	Limit int
	// Secrets is true if nothing of v1 Secrets is kept by value.
	Secrets bool
	// Keys are the secrets of the digests, the present one first; without any, it is the uid of the object.
	Keys [][]byte
}

var secrets = schema.GroupKind{Kind: "Secret"}

// redaction is what holds for one kind: the handlers share its memory, so what one of them wants to be kept secret is.
func (d Digests) redaction(r Resource, own []*handlers.Handler) cause.Redaction {
	redaction := cause.Redaction{Limit: d.Limit, Keys: d.Keys}
	if d.Secrets && r.GroupKind() == secrets {
		redaction.Paths = []diff.Path{nil}
		return redaction
	}
	for _, h := range own {
		for _, path := range h.Redacted {
			if !slices.ContainsFunc(redaction.Paths, func(other diff.Path) bool { return slices.Equal(other, path) }) {
				redaction.Paths = append(redaction.Paths, path)
			}
		}
	}
	return redaction
}
