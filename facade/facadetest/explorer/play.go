package explorer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostCalms is how many times calm the end may be ahead.
const mostCalms = 200

// Play is the people of a scenario.
type Play struct {
	// Client is theirs. Nothing goes wrong with it.
	Client client.Client
	// T is the test of this course: what fails is reported with the name of the course.
	T testing.TB

	world *world
}

// Context is that of the course.
func (p *Play) Context() context.Context { return p.T.Context() }

// Create creates objects, one after the other.
func (p *Play) Create(objects ...client.Object) {
	for _, object := range objects {
		if err := p.patiently(func() error { return p.Client.Create(p.Context(), object) }); err != nil {
			p.T.Fatalf("creating %s: %v", named(object), err)
		}
	}
}

// Edit changes an object: it is read into the argument, changed there by the function, and written; again, if somebody
// else has written meanwhile.
func (p *Play) Edit(object client.Object, change func()) {
	for {
		if err := p.Client.Get(p.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			p.T.Fatalf("reading %s: %v", named(object), err)
		}
		change()
		err := p.patiently(func() error { return p.Client.Update(p.Context(), object) })
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			p.T.Fatalf("editing %s: %v", named(object), err)
		}
	}
}

// Delete asks for the deletion of objects. It does not wait until they are gone: see [Play.Settle].
func (p *Play) Delete(objects ...client.Object) {
	for _, object := range objects {
		if err := p.patiently(func() error { return p.Client.Delete(p.Context(), object) }); err != nil {
			p.T.Fatalf("deleting %s: %v", named(object), err)
		}
	}
}

// patiently repeats a request while the admission handlers of a killed operator do not answer.
func (p *Play) patiently(request func() error) error {
	for begun := time.Now(); ; time.Sleep(restart) {
		err := request()
		down := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
		if !down || time.Since(begun) > time.Minute {
			return err
		}
	}
}

func named(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}

// Sleep lets the operator work for so long.
func (p *Play) Sleep(d time.Duration) { time.Sleep(d) }

// Settle waits until nothing happens any more, see [Calm]. The course fails if that does not come.
func (p *Play) Settle() {
	w := p.world
	begun := time.Now()
	for time.Since(begun) < mostCalms*w.settings.calm {
		rest := w.rest(begun)
		if rest == 0 {
			return
		}
		time.Sleep(min(rest, time.Minute))
	}
	w.mu.Lock()
	w.run.violate(Restless, "", fmt.Sprintf("something still happens after %s", mostCalms*w.settings.calm))
	w.mu.Unlock()
	w.bench.leave()
}

// rest is how long nothing must happen from now on.
func (w *world) rest(begun time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.active {
		if a.changes() {
			return w.settings.calm
		}
	}
	last := w.pulse
	if last.Before(begun) {
		last = begun
	}
	return max(0, w.settings.calm-time.Since(last))
}

// stir notes that the operator writes, unless something runs in the background: that goes on for ever.
func (w *world) stir() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.active {
		if !a.changes() {
			return
		}
	}
	if w.ticked.IsZero() || time.Since(w.ticked) > checkpoint {
		w.pulse = time.Now()
	}
}

// clear deletes all that people have created, the last one first, each when the one before is gone.
func (w *world) clear(p *Play) {
	for i := len(w.run.created) - 1; i >= 0; i-- {
		one := w.run.created[i]
		if uid, _ := w.look(one.path); uid != one.uid {
			continue
		}
		w.request(http.MethodDelete, one.path)
		p.Settle()
		if uid, finalizers := w.look(one.path); uid == one.uid {
			w.mu.Lock()
			w.run.violate(Leaked, one.label, fmt.Sprintf("it was deleted, and is still there: %q hold it", finalizers))
			w.mu.Unlock()
		}
	}
}
