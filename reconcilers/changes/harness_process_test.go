package changes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// process is one run of the operator, from its start to its exit or crash.
type process struct {
	*harness
	handling      *changes.ChangeHandling
	memory        changes.Memory
	link          *link
	ctx           context.Context
	exit          context.CancelFunc
	dead          atomic.Bool
	errs          []error // errors of the passes
	requeueDelays []time.Duration
	gone          bool
}

// start returns a new process without any memory except the annotations of the object.
func (w *harness) start(registered ...*handlers.Handler) *process {
	p := &process{harness: w, link: w.connect(w.t)}
	p.ctx, p.exit = context.WithCancel(logf.IntoContext(w.t.Context(), w.log()))
	w.t.Cleanup(p.exit)
	store := progress.Annotations{Prefix: prefix, Bound: boundToAnnotation}
	lens := &cause.Lens{Diffbase: diffbase.Annotations{Prefix: prefix, Bound: boundToAnnotation}, Progress: store}
	p.handling = &changes.ChangeHandling{
		Lens: lens, InterimStorage: changes.NewInterimStorage(prefix, boundToAnnotation),
		Sight: handlers.SeesEssence,
		HandledKind: kind.HandledKind{
			Settings: testSettings(), StatusSubresource: w.statusSubresource,
			Writer: &patching.PatchWriter{Client: p.link, FieldManager: "t"},
		},
	}
	p.handling.Progress = store
	for _, h := range registered {
		p.handling.Handlers = append(p.handling.Handlers, adapters.New(p.supervised(h), nil))
		p.handling.Sight = min(p.handling.Sight, h.CriteriaSight())
		if h.Field != nil {
			lens.ExtraPaths = append(lens.ExtraPaths, append(diff.Path{}, h.Field...))
		}
	}
	return p
}

// gate is open while the function returns true.
type gate func() bool

func (g gate) Open() bool  { return g() }
func (g gate) Enter() bool { return g() }
func (gate) Leave()        {}

// testSettings returns the settings of the operator.
func testSettings() kind.Settings {
	return kind.Settings{Prefix: prefix, BoundTo: boundToAnnotation, Finalizer: finalizer}.WithDefaults()
}

// supervised records the calls of a handler; calls of a killed process are not made.
func (p *process) supervised(h *handlers.Handler) *handlers.Handler {
	own := *h
	own.FunctionKey = h
	own.Call = func(ctx context.Context, c *handlers.Invocation) error {
		if p.dead.Load() {
			return memapi.ErrCut
		}
		p.called(c.Cause, h.ID)
		return h.Call(ctx, c)
	}
	return &own
}

// kill ends the process at once: none of its further requests reach the server.
func (p *process) kill() {
	p.dead.Store(true)
	p.link.Cut()
	p.exit()
}

// pass makes one pass over the present state of the object.
func (p *process) pass() (changes.PassResult, error) {
	body := p.stored()
	if body == nil {
		return changes.PassResult{Gone: true}, nil
	}
	return p.passOver(body)
}

// passOver makes one pass over a body and checks that the pass does not modify it.
func (p *process) passOver(body map[string]any) (changes.PassResult, error) {
	p.t.Helper()
	seen := copied(body)
	next, err := p.handling.Reconcile(p.ctx, jsontext.NewFromValue(body), &p.memory)
	if diff := cmp.Diff(seen, body); diff != "" {
		p.t.Errorf("the pass has modified the shared body: -before, +after:\n%s", diff)
	}
	if err == nil && next.Settled {
		written, _ := next.Answer.Value()
		p.wantRest(newer(written, body))
	}
	return next, err
}

// settle makes passes as events, delays and errors demand, until there is nothing to do.
func (p *process) settle() {
	p.t.Helper()
	for range 200 {
		if p.dead.Load() || p.step() {
			return
		}
	}
	p.t.Fatalf("the object does not settle; the last writes: %v, calls: %v", p.drainWrites(), p.calls())
}

// step makes one pass and waits for the delay that it returns. It reports whether the object is idle.
func (p *process) step() (resting bool) {
	body := p.stored()
	if body == nil {
		p.gone = true
		return true
	}
	next, err := p.passOver(body)
	changed := versionOf(p.stored()) != versionOf(body)
	var blocked *changes.BlockedError
	if err != nil {
		p.errs = append(p.errs, err)
	}
	switch {
	case next.Gone:
		p.gone = true
		return true
	case p.dead.Load() || p.ctx.Err() != nil || errors.As(err, &blocked):
		return true
	case err != nil:
		time.Sleep(time.Second)
	case changed:
	case next.RequeueAfter == nil:
		return true
	default:
		p.requeueDelays = append(p.requeueDelays, *next.RequeueAfter)
		time.Sleep(*next.RequeueAfter)
	}
	return false
}

// newer returns the newest state of the object after a pass.
func newer(written, body map[string]any) map[string]any {
	if written == nil {
		return body
	}
	return written
}

// wantRest checks that another pass over a settled object does nothing.
func (p *process) wantRest(body map[string]any) {
	p.t.Helper()
	told := p.handling.Journal
	defer func() { p.handling.Journal = told }()
	p.handling.Journal = nil
	calls, requests := p.counts()
	next, err := p.handling.Reconcile(p.ctx, jsontext.NewFromValue(body), &p.memory)
	again, asked := p.counts()
	if err != nil || calls != again || requests != asked || next.RequeueAfter != nil || next.HasOpenChange {
		p.t.Errorf("another pass over a settled object made %d calls and %d requests, and returned %+v, %v",
			again-calls, asked-requests, next, err)
	}
}

// counts returns the numbers of all calls and requests.
func (w *harness) counts() (calls, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return len(w.journal), w.server.writeCount + w.server.reads
}
