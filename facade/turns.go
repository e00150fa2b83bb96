package kopf

import (
	"errors"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

var errInPatch = errors.New(
	"a function of Patch uses a method of its handler's Change, or kopf.Result or kopf.FieldChange: " +
		"call that before Patch",
)

// lock waits for other calls of the handler. A function of Patch would wait for itself, for ever and without a word: it
// panics instead, which is an error of the patch.
func (c *Change[T]) lock() {
	c.needCall()
	if c.mu.TryLock() {
		return
	}
	if codec.Calling() {
		panic(errInPatch)
	}
	c.mu.Lock()
}
