package changes

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// noteWritten makes the state after a write visible to the running function. It runs on the goroutine of the pass.
func (i *invocation) noteWritten() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.latestBody = i.runner.pass.object.body
}

// Latest returns the newer one of the cached object and the answer to the last write of the pass. If the
// cache has lost the object, it cancels the function, which could otherwise wait forever for a change of the object.
func (i *invocation) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	i.mu.Lock()
	written := i.latestBody
	i.mu.Unlock()
	cache := i.runner.pass.handling.Cache
	if cache == nil {
		return written
	}
	cached := cache.Latest(key, uid)
	if cached == nil {
		i.cancel(execution.ErrDeleted)
	}
	return newerBody(cached, written)
}
