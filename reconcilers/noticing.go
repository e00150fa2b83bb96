package reconcilers

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// noticing is the writer of the engine, with an eye on what the API server drops without a word.
type noticing struct {
	*patching.Writer
	kind schema.GroupVersionKind
	said *sync.Map // fields of kinds, each of which is worth one line in the life of the operator
}

// ApplyRetrying is that of the writer.
func (n noticing) ApplyRetrying(
	ctx context.Context, target patching.Target, patch patching.Patch, refetch patching.Refetch,
) (patching.Result, error) {
	result, err := n.Writer.ApplyRetrying(ctx, target, patch, refetch)
	for _, field := range result.Dropped {
		if !custom(n.kind.Group) {
			break // kinds of the server's own leave zeros out, and have fields that are only written
		}
		if _, known := n.said.LoadOrStore(n.kind.String()+" "+field.String(), true); !known {
			logf.FromContext(ctx).Info("The API server does not keep a field: the schema of its CRD does not have it. "+
				"Add it there, or set x-kubernetes-preserve-unknown-fields beside it; this is said once",
				"field", field.String(), "kind", n.kind.String())
		}
	}
	return result, err
}

// custom tells whether the group is that of a CRD, as far as names tell.
func custom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

func (e *engine) writerOf(r Resource) noticing {
	return noticing{Writer: e.writer, kind: r.GroupVersionKind, said: &e.dropped}
}
