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
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// checkInterval is the time between two checks of the objects without an event of a watch.
	checkInterval = 5 * time.Minute
	// exitTimeout limits the writes when the operator exits, in addition to [Options.HandOver].
	exitTimeout = 10 * time.Second
)

// Options configure a Writer.
type Options struct {
	// Client accesses the objects: see [NewClient].
	Client client.WithWatch
	// Name is the name of both objects. Kopf: admission.managed.
	Name string
	// Operator is the name of the operator. It is the field manager and the prefix of an annotation, so several
	// operators can share the objects.
	Operator string
	// Identity is unique for each process of the operator. Started decides which process is the youngest.
	Identity  string
	StartTime time.Time
	// Form is the form of the entries. With AsKopf, as in Kopf, an object only contains the entries of one operator, no
	// process reads the writes of others, and each exit only leaves the persistent entries.
	Form Form
	// HandOver is how long an exiting process that wrote last waits for another process of the operator to take over,
	// before it removes the entries. It must serve meanwhile. Zero does not wait.
	HandOver time.Duration
}

// Writer keeps the entries of one operator in the two webhook configurations. It writes when the entries change here,
// when others change the objects, and when another process of the operator removes the entries. The entries of the
// youngest process win. When the Writer ends, it only leaves the persistent entries, unless another process has written
// after it.
//
// The processes of an operator coordinate by an annotation in each object. A new process replaces the entries of older
// ones, which then stop writing. An exiting process announces its exit there, and waits. If another process is running,
// its watch reports the annotation, and it writes its own entries. Otherwise, the exiting process removes its entries.
type Writer struct {
	options       Options
	objects       [2]*managedObject
	checkRequests chan struct{} // a signal to check the objects; one pending signal is sufficient

	// mu guards the fields below. Any goroutine may set them, and Run reads them.
	mu sync.Mutex
	// hooks and server determine the entries. They are nil until they are known.
	hooks        []Hook
	clientConfig *admissionregistrationv1.WebhookClientConfig
	// inputVersion counts their changes. Each object stores the version that was written last.
	inputVersion int
}

// NewWriter returns a Writer. It does not write before [Writer.SetHooks] and [Writer.SetClientConfig] have been called.
func NewWriter(o Options) *Writer {
	w := &Writer{options: o, checkRequests: make(chan struct{}, 1)}
	w.objects = [2]*managedObject{{writer: w, options: o, kind: validatingKind},
		{writer: w, options: o, kind: mutatingKind}}
	return w
}

// SetHooks sets the hooks. Any goroutine may call it, any number of times.
func (w *Writer) SetHooks(hooks []Hook) {
	w.updateInputs(func() { w.hooks = append([]Hook{}, hooks...) })
}

// SetClientConfig sets the address of the server. Any goroutine may call it, any number of times.
func (w *Writer) SetClientConfig(server admissionregistrationv1.WebhookClientConfig) {
	w.updateInputs(func() { w.clientConfig = &server })
}

// updateInputs applies a change under the lock, and triggers a check of the objects.
func (w *Writer) updateInputs(how func()) {
	w.mu.Lock()
	how()
	w.inputVersion++
	w.mu.Unlock()
	w.triggerCheck()
}

// triggerCheck triggers a check of the objects. It never blocks.
func (w *Writer) triggerCheck() {
	select {
	case w.checkRequests <- struct{}{}:
	default:
	}
}

// Run writes until the context ends, and then cleans up. It returns an error if the operator cannot continue: it may
// not write the objects, or two of its entries have the same name. It logs and retries all other errors.
func (w *Writer) Run(ctx context.Context) error {
	// The watches go on after the end of the context: a process that exits waits for events of its successor.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	// Kopf does not react to changes by others.
	if !w.options.Form.AsKopf {
		for _, object := range w.objects {
			watches.Go(func() { object.watchChanges(watching) })
		}
	}
	pause := RetryBackoff()
	for {
		// The timer restarts for each check, so a signal resets it.
		again := time.After(checkInterval)
		err := w.checkObjects(ctx)
		// An error is logged and retried with growing delays, unless it is permanent.
		var forever *permanentError
		switch {
		case ctx.Err() != nil:
			// The error of an interrupted write does not matter.
			return w.removeTransientEntries(ctx)
		case errors.As(err, &forever):
			return err
		case err != nil:
			after := pause.Step()
			logf.FromContext(ctx).Error(err, "Cannot write a webhook configuration; retrying", "after", after.String())
			again = time.After(after)
		default:
			pause = RetryBackoff()
		}
		select {
		case <-ctx.Done():
			return w.removeTransientEntries(ctx)
		case <-again:
		case <-w.checkRequests:
		}
	}
}

// checkObjects checks both objects, and writes them if that is due.
func (w *Writer) checkObjects(ctx context.Context) error {
	return w.forEachObject(func(object *managedObject) error {
		wanted, version, err := w.wantedEntries(object, false)
		if err != nil || version == 0 { // at 0, the hooks or the address are not known yet
			return err
		}
		return object.applyIfDue(ctx, wanted, version)
	})
}

// forEachObject calls a function with both objects. An error of one object does not prevent the call with the other.
func (w *Writer) forEachObject(do func(object *managedObject) error) error {
	var failed []error
	for _, object := range w.objects {
		if err := do(object); err != nil {
			failed = append(failed, fmt.Errorf("%s %q: %w", object.kind.Kind, w.options.Name, err))
		}
	}
	return errors.Join(failed...)
}

// wantedEntries returns the entries for an object and their version. The version is zero if the hooks or the address
// are not known yet.
func (w *Writer) wantedEntries(of *managedObject, persistentOnly bool) (entries []any, version int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hooks == nil || w.clientConfig == nil {
		return nil, 0, nil
	}
	form := w.options.Form
	form.PersistentOnly = persistentOnly
	entries, err = unstructuredEntries(w.hooks, *w.clientConfig, form, of.kind == mutatingKind)
	// The hooks themselves are invalid, so a retry would fail, too.
	if err != nil {
		err = &permanentError{err}
	}
	return entries, w.inputVersion, err
}

// isWithdrawn reports whether the operator has no admission handlers any more.
func (w *Writer) isWithdrawn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hooks != nil && len(w.hooks) == 0
}

// isOlderProcess reports whether the process with this mark started before this one. If both started at the same time,
// the identity decides, so that all processes agree.
func (w *Writer) isOlderProcess(m mark) bool {
	return cmp.Or(m.StartTime.Compare(w.options.StartTime), cmp.Compare(m.LastWriter, w.options.Identity)) < 0
}

// permanentError is an error that no retry can resolve.
type permanentError struct{ err error }

func (h *permanentError) Error() string { return h.err.Error() }

func (h *permanentError) Unwrap() error { return h.err }

// explainForbidden returns a hopeless error if the API server denies a request and nothing was written before: the
// operator lacks permissions. After the first write, the Writer retries even then.
func explainForbidden(err error, before bool) error {
	if before || !apierrors.IsForbidden(err) {
		return err
	}
	return &permanentError{fmt.Errorf("the operator may not manage webhook configurations: grant it get, create, "+
		"patch and watch of them, or turn their management off: %w", err)}
}

// RetryBackoff returns the delays between retries of admission: from one second up to half a minute.
func RetryBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
