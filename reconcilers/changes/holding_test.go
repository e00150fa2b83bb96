package changes_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
)

// background is a background task whose state a test sets.
type background struct{ holds, busy bool }

func (b *background) DelaysDeletion(*cause.Cause) bool { return false }

func (b *background) Supervise(context.Context, *cause.Cause) (holds, busy bool, err error) {
	return b.holds, b.busy, nil
}

// dependents hold the object until they are released, which may fail.
type dependents struct {
	held         bool
	releaseErr   error
	releaseCount int
}

func (d *dependents) HasDependents(map[string]any) bool { return d.held }

func (*dependents) Forget(types.UID) {}

func (d *dependents) Release(context.Context, map[string]any) error {
	d.releaseCount++
	d.held = d.releaseErr != nil
	return d.releaseErr
}

// TestHolding shows that a deleted object without delete handlers waits for background tasks and dependents.
func TestHolding(t *testing.T) {
	run(t, map[string]scenario{
		"Background": {"a deleted object waits for its running background task", func(w *harness) {
			b := &background{holds: true}
			p := w.start(onCreate("a", ok))
			p.handling.Background = b
			p.settle()
			w.wantAt("held", []any{finalizer}, "metadata", "finalizers")
			w.delete()
			b.busy = true
			p.settle()
			w.wantAt("the task is running", []any{finalizer}, "metadata", "finalizers")
			b.holds, b.busy = false, false
			p.settle()
			if !p.gone {
				w.t.Error("the task has ended, and the object still exists")
			}
		}},
		"BackgroundAlone": {"a deleted object without a handler of changes waits for its task", func(w *harness) {
			b := &background{holds: true}
			p := w.start(onCreate("a", ok, ifLabelled))
			p.handling.Background = b
			p.settle()
			w.delete()
			b.busy = true
			p.settle()
			w.wantAt("the task is running", []any{finalizer}, "metadata", "finalizers")
			b.busy = false
			p.settle()
			w.want("gone", true, p.gone)
		}},
		"BackgroundLets": {"a deleted object waits for a task that does not match it any more", func(w *harness) {
			b := &background{holds: true}
			p := w.start(onCreate("a", ok))
			p.handling.Background = b
			p.settle()
			w.delete()
			b.holds, b.busy = false, true
			p.settle()
			w.wantAt("the task is running", []any{finalizer}, "metadata", "finalizers")
		}},
		"Dependents": {"a deleted object waits until its dependents are released, despite errors", func(w *harness) {
			d := &dependents{held: true, releaseErr: errors.New("out of reach")}
			p := w.start(onCreate("a", ok))
			p.handling.Dependents = d
			p.settle()
			w.wantAt("held", []any{finalizer}, "metadata", "finalizers")
			w.delete()
			if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), "out of reach") {
				w.t.Errorf("want an error that contains the failure, got: %v", err)
			}
			w.wantAt("the release failed", []any{finalizer}, "metadata", "finalizers")
			d.releaseErr = nil
			p.settle()
			if !p.gone || d.releaseCount != 2 {
				w.t.Errorf("want it gone after 2 releases, got gone: %v, %d releases", p.gone, d.releaseCount)
			}
		}},
		"NoDependents": {"an object without dependents gets no finalizer", func(w *harness) {
			p := w.start(onCreate("a", ok))
			p.handling.Dependents = &dependents{}
			p.settle()
			w.wantAt("not held", nil, "metadata", "finalizers")
		}},
	})
}

// TestUncertainAnswers shows that the object is read before the next decision if an error answer describes a problem
// of the API server, since the write may have taken effect.
func TestUncertainAnswers(t *testing.T) {
	const forbidden = metav1.StatusReasonForbidden // the code counts, whatever the reason
	cases := map[string]scenario{}
	for name, c := range map[string]struct {
		code  int32 // -1 drops the answer
		reads bool
	}{
		"NoAnswer": {-1, true}, "NoCode": {0, true}, "RequestTimeout": {http.StatusRequestTimeout, true},
		"InternalServerError": {http.StatusInternalServerError, true},
		"GatewayTimeout":      {http.StatusGatewayTimeout, true},
		"OfAWebhook":          {http.StatusBadRequest, false}, // they choose code and reason
		"Forbidden":           {http.StatusForbidden, false}, "MethodNotAllowed": {http.StatusMethodNotAllowed, false},
	} {
		cases[name] = scenario{"the object is read again only if the answer leaves the result of the write " +
			"uncertain", func(w *harness) {
			w.after = func(write) error {
				w.after = nil
				if c.code < 0 {
					return errors.New("the connection is broken")
				}
				return &apierrors.StatusError{ErrStatus: metav1.Status{
					Status: metav1.StatusFailure, Code: c.code, Reason: forbidden, Message: "no",
				}}
			}
			p := w.start(onCreate("a", ok))
			stale := w.stored()
			_, _ = p.passOver(stale)
			before := w.reads
			time.Sleep(time.Minute)
			_, _ = p.passOver(stale)
			if read := w.reads > before; read != c.reads {
				w.t.Errorf("code %d: read is %v, want %v", c.code, read, c.reads)
			}
		}}
	}
	run(t, cases)
}

// TestLongDelays shows that handlers with delays of more than a day are logged once.
func TestLongDelays(t *testing.T) {
	delayed := func(hours int) error { return temporaryError{delay: time.Duration(hours) * time.Hour} }
	run(t, map[string]scenario{
		"Several": {"the log line lists handlers delayed by more than a day, with the earliest time", func(w *harness) {
			p := w.start(
				onCreate("soon", fails(1, delayed(1))), onCreate("done", ok), onCreate("day", fails(1, delayed(24))),
				onCreate("late", fails(1, delayed(72))), onCreate("first", fails(1, delayed(48))),
				onCreate("last", fails(1, delayed(96))),
			)
			for range 3 {
				_, _ = p.pass()
			}
			until := w.started.Add(48 * time.Hour).UTC().Format("2006-01-02 15")
			if !w.hasLogged("more than a day", `"handlers"=["late" "first" "last"]`, until) {
				w.t.Errorf("logged: %q, want %s", w.logLines, until)
			}
			n := 0
			for _, line := range w.logLines {
				n += strings.Count(line, "more than a day")
			}
			w.want("lines", 1, n)
		}},
		"OfAnotherCause": {"a delayed handler of another cause is not logged", func(w *harness) {
			record := map[string]any{"purpose": "create", "delayed": "9999-01-01T00:00:00Z"}
			w.set(string(encoded(record)), "metadata", "annotations", prefix+"/u")
			_, _ = w.start(onCreate("a", fails(1, delayed(1))), onUpdate("u", ok)).pass()
			w.want("logged", false, w.hasLogged("more than a day"))
		}},
	})
}

// TestIdleMemory shows when the memory of an object must be kept between its passes.
func TestIdleMemory(t *testing.T) {
	lost := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "no"}}
	run(t, map[string]scenario{
		"AtRest": {"the memory of a settled object need not be kept", func(w *harness) {
			p := w.start(onCreate("a", ok))
			p.settle()
			w.want("idle, unwritten", []bool{true, false}, []bool{p.memory.IsEmpty(), p.memory.HasUnwrittenOutcomes()})
		}},
		"Unwritten": {"the memory of unwritten outcomes is kept", func(w *harness) {
			w.before = func(write) error { return lost }
			p := w.start(onCreate("a", ok))
			_, _ = p.pass()
			w.want("idle, unwritten", []bool{false, true}, []bool{p.memory.IsEmpty(), p.memory.HasUnwrittenOutcomes()})
		}},
		"Initial": {"the memory of a resume whose handlers were not called yet is kept", func(w *harness) {
			p := w.start(onResume("r", ok))
			p.memory.Initial = true
			w.want("idle", false, p.memory.IsEmpty())
		}},
		"Gone": {"the memory of a deleted object is kept, because a stale cache may show it again", func(w *harness) {
			p := w.start(onCreate("a", does(w.delete)))
			_, _ = p.pass()
			w.want("idle", false, p.memory.IsEmpty())
		}},
		"Deleted": {"the records of an open cause are kept in case another client removes them", func(w *harness) {
			p := w.start(onDelete("d", runs(sub("s", fails(1, temporaryError{delay: time.Hour})))))
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.want("attempts", int64(1), w.record("d.s", "retries"))
			w.want("idle", false, p.memory.IsEmpty())
		}},
		"LongDelays": {"the memory of a logged long delay is kept, so that it is logged once", func(w *harness) {
			p := w.start(onCreate("a", fails(1, temporaryError{delay: 48 * time.Hour})))
			_, _ = p.pass()
			w.want("idle", false, p.memory.IsEmpty())
		}},
		"Told": {"the memory of written conditions is kept, so that removed ones are not restored", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil)
			p.settle()
			w.want("idle", false, p.memory.IsEmpty())
		}},
	})
}
