package changes

import (
	"cmp"
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// annotationsLimit is how many bytes of keys and values the API server takes.
const annotationsLimit = 256 * 1024

// storeHandled stores the essence as the one last handled, or digests of it where values do not fit, or are secret.
func (p *pass) storeHandled(ctx context.Context, patch *patching.Patch, handled diffbase.Essence) error {
	size, err := p.storeFitting(patch, handled, p.Lens.Diffbase.Store)
	large, measured := p.Lens.Redaction.Exceeded(handled)
	if measured == nil && (large || size > annotationsLimit) {
		logf.FromContext(ctx).Info("The object is too large to remember it as a whole: handlers will see that it "+
			"changed, not what it was",
			"handlers", p.owned(), "annotations", size, "limit", annotationsLimit)
	}
	return err
}

// fits tells whether all that ends the cause can be stored. An object that is going needs no memory: rather than to be
// refused with it, the finalizer is removed without it.
func (p *pass) fits(patch *patching.Patch, handled diffbase.Essence) bool {
	trial := patch.Clone()
	if trial.Merge == nil {
		trial.Merge = map[string]any{}
	}
	if p.bind(&trial) != nil {
		return false
	}
	if _, err := p.storeFitting(&trial, handled, p.Lens.Diffbase.Store); err != nil {
		return false
	}
	return annotationsSize(p.body, trial.Merge) <= annotationsLimit
}

// storing adds a form of an essence to a merge-patch.
type storing func(patch, body map[string]any, form diffbase.Essence) error

// storeFitting stores the best form of the essence that fits, and tells what the annotations weigh with the first one.
func (p *pass) storeFitting(patch *patching.Patch, essence diffbase.Essence, store storing) (first int, err error) {
	for form, err := range p.Lens.Redaction.Forms(p.body, essence) {
		if err != nil {
			return first, err
		}
		if err := store(patch.Merge, p.body, form); err != nil {
			return first, err
		}
		size := annotationsSize(p.body, patch.Merge)
		first = cmp.Or(first, size)
		if size <= annotationsLimit {
			break
		}
	}
	return first, nil
}

// annotationsSize is what the annotations will weigh with the patch applied, as the API server counts it.
func annotationsSize(body, merge map[string]any) int {
	old, changed := annotationsOf(body), annotationsOf(merge)
	size := 0
	for key, value := range changed {
		if text, ok := value.(string); ok {
			size += len(key) + len(text)
		}
	}
	for key, value := range old {
		text, ok := value.(string)
		if _, replaced := changed[key]; ok && !replaced {
			size += len(key) + len(text)
		}
	}
	return size
}
