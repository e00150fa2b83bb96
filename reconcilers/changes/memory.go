package changes

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Memory is what is known of one object between its passes, beyond what is persisted on it. It belongs to a uid.
// The zero value is an object of which nothing is known.
type Memory struct {
	// Initial is true if the object was in the first listing and was not handled to the end since.
	Initial bool

	unwritten   *unwritten
	uncertain   bool   // whether the last write was done is not known
	unreachable string // the fields of handlers of which it was told that the object cannot have them
}

// unwritten is what handlers did and the API server did not take: kept so that they are not called again for it.
type unwritten struct {
	cause    *cause.Cause
	stored   diffbase.Essence // what was handled last then, as it stood on the object
	state    *execution.State
	attempts []*execution.Attempt
	interim  diffbase.Essence
	purging  bool
}

// Idle is true if there is nothing to remember: the memory can be dropped.
func (m *Memory) Idle() bool {
	return !m.Initial && m.unwritten == nil && !m.uncertain && m.unreachable == ""
}
