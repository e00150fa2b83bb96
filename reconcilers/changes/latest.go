package changes

import "k8s.io/apimachinery/pkg/types"

// noteWritten shows the function what was written while it runs.
func (i *invocation) noteWritten() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.written = i.runner.pass.object.body
}

// Latest is the newer of what the cache has and what the pass knows, as it may have written something itself. If the
// cache has lost the object, that is the moment to cancel the function: it may be waiting for something that never
// comes.
func (i *invocation) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	i.mu.Lock()
	written := i.written
	i.mu.Unlock()
	cache := i.runner.pass.handling.Cache
	if cache == nil {
		return written
	}
	cached := cache.Latest(key, uid)
	if cached == nil {
		i.cancel(ErrDeleted)
	}
	return newest(cached, written)
}
