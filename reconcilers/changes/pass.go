package changes

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// pass is one look at one object. Its steps fill it from top to bottom.
type pass struct {
	*Handling
	memory *Memory
	log    logr.Logger

	misread bool // a record could not be read

	body     map[string]any // the object as last known: replaced by the answer to each write
	reading  map[string]any // the same without memory that belongs to another object
	foreign  map[string]any // the merge-patch that leads from the former to the latter; nil if there is no difference
	stored   diffbase.Essence
	veiled   []diff.Path      // under which the diff of the cause has no values
	former   *execution.State // all records of our handlers
	cause    *cause.Cause
	interest handlers.Interest
	interim  diffbase.Essence // what the first successful handler of the cause saw, if any succeeded
	stale    bool             // the object has interim memory that is not believed
	selected []*handlers.Handler
	state    *execution.State
	working  map[string]any       // the object as the next handler is to see it
	purging  bool                 // records of former causes are to be removed with the next write
	attempts []*execution.Attempt // those with something that is not written yet
	pending  time.Time            // since when an outcome waits for its write; zero if none does
	written  map[string]any       // the last answer to a write
	holds    bool                 // something in the background wants the object to be held on its deletion
	busy     bool                 // the object is being deleted, and something still runs for it
	exiting  bool
	gone     bool
	released bool  // our write let the object go for good
	refusal  error // of the status, by the last write
	room     *room // for the progress of sub-handlers; nil as long as there are none
}

// verdict is what a step says about those after it.
type verdict int

const (
	goOn verdict = iota
	stop
	startOver
)

type step func(*pass, context.Context) (verdict, error)

// steps is the pipeline of a pass.
var steps = []step{
	(*pass).reread,
	(*pass).observe,
	(*pass).attend,
	(*pass).deliver,
	(*pass).weigh,
	(*pass).spread,
	(*pass).hold,
	(*pass).settle,
	(*pass).account,
	(*pass).run,
	(*pass).conclude,
}

func (p *pass) round(ctx context.Context) (verdict, error) {
	for _, step := range steps {
		v, err := p.take(ctx, step)
		if err != nil {
			return stop, err
		}
		if p.gone {
			return stop, nil
		}
		if v != goOn {
			return v, nil
		}
	}
	return stop, nil
}

// take makes one step. A panic of the engine's own, or of what it asks, is an error of this object alone.
func (p *pass) take(ctx context.Context, step step) (v verdict, err error) {
	err = panics.Contain(func() (err error) { v, err = step(p, ctx); return err })
	return v, err
}

// read gives the record of one handler.
func (p *pass) read(id string) (*progress.Record, error) {
	if kept, ok := p.memory.records[id]; ok {
		return &kept, nil
	}
	record, err := p.Progress.Fetch(p.reading, id)
	if p.blocks(err) {
		return nil, err
	}
	p.ignored(err)
	p.misread = p.misread || err != nil
	return record, nil
}

// owned are the ids of all handlers of the kind: the records that are ours.
func (h *Handling) owned() []string {
	ids := make([]string, 0, len(h.Handlers))
	for _, handler := range h.Handlers {
		ids = append(ids, handler.ID)
	}
	return ids
}
