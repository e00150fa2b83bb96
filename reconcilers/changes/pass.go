package changes

import (
	"context"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// longestSleep is the longest time between two passes over an object with a delayed handler: a delay may be endless, by
// a wrong clock or by an edit of the record, and sleeps do not follow a clock that is corrected.
const longestSleep = 24 * time.Hour

// pass handles one object once, in as many rounds as its own writes ask for.
type pass struct {
	handling *Handling
	memory   *Memory
	object   object
	outcomes *outcomes      // of the cause whose handlers are called or written; nil before
	closed   cause.Reason   // of a change that a former pass could not write the end of
	exiting  bool           // the operator is exiting, or paused: nothing is begun any more
	lost     bool           // another client has removed our memory, and that was logged
	rewrite  time.Duration  // after which our memory is to be written again; zero is not at all
	settled  bool           // nothing is to be done for the object as the pass leaves it
	waits    bool           // the deletion handlers wait for what runs in the background
	deletion bool           // the deletion of the object was handled, by this pass or before
	look     *journal.Draft // of this round; nil if nobody is told
	own      *ownCalls      // of this round, if our own write has caused it; nil otherwise
	looping  []string       // the handlers that call themselves again and again, if this pass has called them
}

// verdict is what a step says about those after it.
type verdict int

const (
	goOn      verdict = iota
	stop              // the pass is done
	startOver         // the object has changed by our own write: it is looked at anew
)

// Idle is true if there is nothing to remember: the memory can be dropped.
func (m *Memory) Idle() bool {
	return !m.Initial && m.unwritten == nil && !m.uncertain && m.missingFields == "" && m.longDelays == "" &&
		m.logged == nil && m.retried == 0 && m.records == nil && m.open.of == nil && m.losses == nil && m.told == 0 &&
		m.ownWrites == nil
}

// detach lets go of the objects that unwritten outcomes were read from.
func (m *Memory) detach() {
	if m.unwritten != nil {
		m.unwritten.state.Detach()
		m.unwritten.seen.state.Detach()
	}
}

// Unwritten tells whether there is something that handlers did, and that could not be written yet.
func (m *Memory) Unwritten() bool { return m.unwritten != nil }

// LeavesAlone tells of an object, without decoding it, that a pass over it could not do anything: nobody handles
// changes of the kind, or runs in the background for it, and the object has neither our finalizer nor annotations of
// ours from another time.
func (h *Handling) LeavesAlone(object *compact.Object) bool {
	if len(h.Handlers) > 0 || h.Background != nil || h.Conditions != nil {
		return false
	}
	return !object.Mentions(h.Finalizer, h.Interim.annotations.Prefix)
}

// Reconcile makes one pass over the object, which is shared and not modified.
// A *BlockedError says that the object must change first; any other error is to be tried again later.
func (h *Handling) Reconcile(ctx context.Context, newest *jsontext.Object, memory *Memory) (Next, error) {
	body, err := newest.Value()
	if err != nil {
		return Next{}, err
	}
	p := &pass{handling: h, memory: memory, object: object{handling: h, memory: memory, body: body, opened: newest}}
	defer func() { p.look.Note(); memory.detach() }()
	for range rounds {
		verdict, err := p.round(ctx)
		p.settled = err == nil && verdict == stop && p.settles()
		if err != nil || verdict != startOver || p.object.gone {
			if p.object.gone { // should the cache show it once more, the API server is asked first
				p.decideAll()
				*memory = Memory{uncertain: true}
			}
			p.logLongDelays(ctx)
			return p.next(), err
		}
	}
	return p.next(), errUnsettled
}

// decideAll reports the outcomes of an object that is gone, whose writes are not to come.
func (p *pass) decideAll() {
	for _, left := range []*outcomes{p.outcomes, p.memory.unwritten} {
		if left != nil {
			left.decide()
		}
	}
}

// round takes the steps of a pass once, on the object as it is known now. A step that changes the object for those
// after it asks for another round; one that finds the object gone ends the pass.
func (p *pass) round(ctx context.Context) (verdict, error) {
	p.outcomes, p.own, p.rewrite = nil, nil, 0
	if err := p.object.refreshIfUncertain(ctx); err != nil || p.object.gone {
		return stop, err
	}
	seen, err := p.observe(ctx)
	if err != nil {
		return stop, err
	}
	if p.memory.ownWrites != nil {
		p.detectOwnCause(seen.cause)
	}
	p.look = p.noted().Look(seen.cause)
	wanted, err := p.attendBackground(ctx, seen.cause)
	if err != nil {
		return stop, err
	}
	unwritten, next, err := p.retryUnwritten(ctx, seen, wanted.busy)
	if next != goOn || err != nil {
		return next, err
	}
	if next, err := p.checkInterest(ctx, seen.cause, &wanted); next != goOn || err != nil {
		return next, err
	}
	if next, err := p.restoreLost(ctx, seen, wanted); next != goOn || err != nil {
		return next, err
	}
	if next, err := p.syncStorages(ctx, seen, wanted); next != goOn || err != nil {
		return next, err
	}
	if next, err := p.ensureFinalizer(ctx, seen, wanted); next != goOn || err != nil {
		return next, err
	}
	if next, err := p.dropStaleProgress(ctx, seen, wanted); next != goOn || err != nil {
		if err == nil && next == stop && p.handling.Conditions != nil {
			err = p.tellWithoutNews(ctx, seen.cause)
		}
		return next, err
	}
	if seen.cause.Reason == cause.Delete {
		if p.waits = p.awaitsBackground(seen.cause); p.waits {
			return stop, nil
		}
	}
	selected, err := p.restoreProgress(ctx, seen, wanted.busy, unwritten)
	if err != nil {
		return stop, err
	}
	if p.outcomes.isKept() {
		if next, err := p.retryHolders(ctx); next != goOn || err != nil {
			return next, err
		}
	}
	p.deletion = p.deletion || seen.cause.Reason == cause.Delete
	if err := p.callDueHandlers(ctx, selected); err != nil || p.object.gone {
		return stop, err
	}
	return stop, p.closeOrContinue(ctx)
}

// noted is the object as the journal knows it.
func (p *pass) noted() journal.Object { return p.handling.Journal.Of(p.object.body) }

// next is the earliest moment at which a handler wants to be called again, but not later than the longest sleep.
func (p *pass) next() Next {
	next := Next{Gone: p.object.gone, Released: p.object.released, Written: p.object.answer}
	next.Closed, next.Settled, next.Lost, next.Deletion = p.closed, p.settled, p.lost, p.deletion
	next.Looping = p.looping
	if p.rewrite > 0 && !p.object.gone {
		next.After = &p.rewrite
	}
	if next.Open = p.waits; p.object.gone || p.outcomes == nil {
		return next
	}
	p.tellProgress(&next)
	if p.exiting {
		return next
	}
	for _, delay := range p.outcomes.state.Delays(p.handling.Now()) {
		if next.After == nil || delay < *next.After {
			next.After = ptr.To(min(delay, longestSleep))
		}
	}
	return next
}

// tellProgress says how far the change is that the pass has come to know.
func (p *pass) tellProgress(next *Next) {
	handled := p.outcomes
	isKept := handled.isKept()
	next.Open = !handled.done() && !isKept
	called := false
	for _, h := range handled.state.Handlers() {
		if !h.Counts() {
			continue
		}
		called = true
		if !next.Open {
			break
		}
		if next.Since.IsZero() || h.Started.Before(next.Since) {
			next.Since = h.Started
		}
		if h.Finished() || h.Blocked() || h.Delayed == nil || !h.Delayed.After(p.handling.Now()) {
			continue
		}
		next.Waiting = append(next.Waiting, Waiting{Handler: h.ID, Until: *h.Delayed})
	}
	if called && !next.Open && !isKept {
		next.Closed = handled.cause.Reason
	}
}

// logLongDelays logs once which handlers are delayed for longer than the longest sleep: by a record, nobody else may
// ever have heard of it.
func (p *pass) logLongDelays(ctx context.Context) {
	ids, until := p.delayedForLong()
	said := strings.Join(ids, " ")
	if said == p.memory.longDelays {
		return
	}
	p.memory.longDelays = said
	if said != "" {
		logging.Warn(logf.FromContext(ctx), "Handlers are delayed for more than a day", "handlers", ids, "first", until)
	}
}

// delayedForLong are the handlers that sleep for longer than the longest sleep, and until when the first of them does.
func (p *pass) delayedForLong() (ids []string, until time.Time) {
	if p.outcomes == nil {
		return nil, until
	}
	for _, h := range p.outcomes.state.Handlers() {
		if !h.Active || h.Finished() || h.Delayed == nil || h.Delayed.Sub(p.handling.Now()) <= longestSleep {
			continue
		}
		ids = append(ids, h.ID)
		if until.IsZero() || h.Delayed.Before(until) {
			until = *h.Delayed
		}
	}
	return ids, until
}

// IDs are those of all handlers of the kind, in the order of registration: their records are ours.
func (h *Handling) IDs() []string { return adapters.IDs(h.Handlers) }

// filterError is the error of a filter. If the object does not even fit into the filter's type, no other try helps.
func filterError(err error) error {
	if execution.Undecodable(err) {
		return &BlockedError{Err: err}
	}
	return err
}
