package changes

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Memory is what is known of one object between its passes, beyond what is persisted on it. It belongs to a uid.
// The zero value is an object of which nothing is known.
type Memory struct {
	// Initial is true if the object was in the first listing and was not handled to the end since.
	Initial bool

	unwritten   *unwritten
	uncertain   bool   // whether the last write was done is not known
	unreachable string // the fields of handlers of which it was told that the object cannot have them
	sleeping    string // what was said last about handlers that are delayed for very long

	told    map[string]bool            // what was said of memory that fails, of an object that is being deleted
	records map[string]progress.Record // what could not be stored of such an object
}

// toldMost bounds what is kept of it: whoever can change the object can make any number of texts.
const toldMost = 16

func (m *Memory) tell(text string) {
	if m.told == nil || len(m.told) >= toldMost {
		m.told = map[string]bool{}
	}
	m.told[text] = true
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
	return !m.Initial && m.unwritten == nil && !m.uncertain && m.unreachable == "" && m.sleeping == "" &&
		m.told == nil && m.records == nil
}

// remember keeps the records of an object that is being deleted if they cannot be stored, or be read again: the
// deletion goes on, with its retries counted.
func (p *pass) remember(failed error) {
	if !p.cause.Deleting || failed == nil && !p.misread && p.memory.records == nil {
		return
	}
	if p.memory.records == nil {
		p.memory.records = map[string]progress.Record{}
	}
	maps.Copy(p.memory.records, p.state.Records())
}
