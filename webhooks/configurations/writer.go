package configurations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lookInterval is how often the objects are looked at if no watch tells of changes.
	lookInterval = 5 * time.Minute
	// leaveTimeout is how long it may take to write the objects when the operator exits, beside [Options.HandOver].
	leaveTimeout = 10 * time.Second
)

// Options say what a Writer keeps in the cluster.
type Options struct {
	// Client is for the objects: see [NewClient].
	Client client.WithWatch
	// Name is that of the two objects. Kopf: admission.managed.
	Name string
	// Operator is the name of the operator; several may share the objects. It is the field manager, and the prefix of
	// an annotation.
	Operator string
	// Identity names this process among those of the operator, and Started tells which of them is the youngest.
	Identity string
	Started  time.Time
	// Form says how the entries look. With AsKopf, the objects have the entries of one operator only, no process looks
	// at what others have written, and each of them leaves nothing but persistent entries behind, as with Kopf.
	Form Form
	// HandOver is how long a process that exits, and wrote last, waits for another one of the operator to take its
	// place, before it takes the entries away: meanwhile it must serve. Zero is no time at all.
	HandOver time.Duration
}

// Writer keeps the entries of one operator in the two objects of webhook configurations: whenever they change here, are
// changed there by others, or were taken away by another process of the operator. The entries of the youngest process
// win. When it ends, it leaves the persistent entries alone, unless another process wrote after it.
type Writer struct {
	options Options
	objects [2]*kept
	news    chan struct{} // there is something to look at

	mu sync.Mutex
	// hooks and server are what the entries are made of; nil if they are not known yet.
	hooks  []Hook
	server *admissionregistrationv1.WebhookClientConfig
	// version counts their changes.
	version int
}

// NewWriter makes a writer. It writes nothing before [Writer.Serve] and [Writer.Reach] have been called.
func NewWriter(o Options) *Writer {
	w := &Writer{options: o, news: make(chan struct{}, 1)}
	w.objects = [2]*kept{{writer: w, options: o, kind: validatingKind}, {writer: w, options: o, kind: mutatingKind}}
	return w
}

// Serve says which hooks there are from now on. Any goroutine may call it, again and again.
func (w *Writer) Serve(hooks []Hook) {
	w.change(func() { w.hooks = append([]Hook{}, hooks...) })
}

// Reach says where the server is from now on. Any goroutine may call it, again and again.
func (w *Writer) Reach(server admissionregistrationv1.WebhookClientConfig) {
	w.change(func() { w.server = &server })
}

func (w *Writer) change(how func()) {
	w.mu.Lock()
	how()
	w.version++
	w.mu.Unlock()
	w.look()
}

// look has the objects looked at soon. It never blocks.
func (w *Writer) look() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// Run writes until the context ends, and cleans up then. An error says that the operator cannot go on: it may not write
// the objects, or two of its entries have the same name. Other failures are logged, and it tries again.
func (w *Writer) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	if !w.options.Form.AsKopf {
		for _, object := range w.objects {
			watches.Go(func() { object.watch(watching) })
		}
	}
	pause := backoff()
	for {
		again := time.After(lookInterval)
		err := w.keep(ctx)
		var forever *hopeless
		switch {
		case ctx.Err() != nil:
			return w.leave(ctx)
		case errors.As(err, &forever):
			return err
		case err != nil:
			after := pause.Step()
			logf.FromContext(ctx).Error(err, "Cannot write a webhook configuration; retrying", "after", after.String())
			again = time.After(after)
		default:
			pause = backoff()
		}
		select {
		case <-ctx.Done():
			return w.leave(ctx)
		case <-again:
		case <-w.news:
		}
	}
}

// keep does for both objects what there is to do.
func (w *Writer) keep(ctx context.Context) error {
	var failed []error
	for _, object := range w.objects {
		wanted, version, err := w.wanted(object, false)
		if version == 0 {
			return err // what to write is not known yet
		}
		if err == nil {
			err = object.keep(ctx, wanted, version)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %q: %w", object.kind.Kind, w.options.Name, err))
		}
	}
	return errors.Join(failed...)
}

// wanted are the entries for an object, and the version of what they are made of, which is zero if that is not known.
func (w *Writer) wanted(of *kept, persistentOnly bool) (entries []any, version int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hooks == nil || w.server == nil {
		return nil, 0, nil
	}
	form := w.options.Form
	form.PersistentOnly = persistentOnly
	entries, err = plain(w.hooks, *w.server, form, of.kind == mutatingKind)
	if err != nil {
		err = &hopeless{err}
	}
	return entries, w.version, err
}

// isWithdrawn reports whether the operator has no handlers of admission any more.
func (w *Writer) isWithdrawn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hooks != nil && len(w.hooks) == 0
}

// older tells whether another process started before this one. Of those that started at once, the identity decides.
func (w *Writer) older(m mark) bool {
	return cmp.Or(m.Started.Compare(w.options.Started), cmp.Compare(m.Writer, w.options.Identity)) < 0
}

// hopeless is an error that no retry can mend.
type hopeless struct{ err error }

func (h *hopeless) Error() string { return h.err.Error() }

func (h *hopeless) Unwrap() error { return h.err }

// explained makes a refusal hopeless, if nothing was written before: then permissions are missing.
func explained(err error, before bool) error {
	if before || !apierrors.IsForbidden(err) {
		return err
	}
	return &hopeless{fmt.Errorf("the operator may not manage webhook configurations: grant it get, create, patch "+
		"and watch of them, or turn their management off: %w", err)}
}

func backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
