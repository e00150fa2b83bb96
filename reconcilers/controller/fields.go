package controller

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// writerFor is the operator's writer, with an eye on what the API server drops without a word. Kinds of the server's
// own leave zeros out, and have fields that are only written, so nothing is said of theirs.
func (d *Dependencies) writerFor(r discovery.Resource) *patching.Writer {
	w := d.Writer
	if custom(r.Group) {
		w.Observer = &droppedFieldLogger{kind: r.GroupVersionKind, logged: &d.dropped}
	}
	return &w
}

// custom tells whether the group is that of a CRD, as far as names tell.
func custom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// droppedFieldLogger says which fields the API server does not keep.
type droppedFieldLogger struct {
	kind   schema.GroupVersionKind
	logged *sync.Map // fields of kinds, each of which is worth one line in the life of the operator
}

var _ patching.Observer = (*droppedFieldLogger)(nil)

// Dropped is called by the writer.
func (l *droppedFieldLogger) Dropped(ctx context.Context, fields []diff.Path) {
	for _, field := range fields {
		if _, known := l.logged.LoadOrStore(l.kind.String()+" "+field.String(), true); !known {
			logf.FromContext(ctx).Info("API server dropped a field that the schema of its CRD does not have. Add it "+
				"there, or set x-kubernetes-preserve-unknown-fields beside it; logged once",
				"field", field.String(), "kind", l.kind.String())
		}
	}
}
