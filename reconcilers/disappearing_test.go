package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// deletionRun runs an operator whose object is going to disappear.
type deletionRun struct {
	directClient

	server        *memapi.Server
	connection    *memapi.Connection
	options       reconcilers.Options
	registrations []reconcilers.Registration
	lines         journal     // of the log
	down          atomic.Bool // the connection fails
	stop          func()
}

func (d *deletionRun) start() {
	d.connection = d.server.Connect()
	d.connection.Before = func(context.Context, memapi.Request) error {
		if d.down.Load() {
			return errors.New("the network is down")
		}
		return nil
	}
	log := funcr.New(func(_, line string) { d.lines.add(line) }, funcr.Options{})
	d.stop = operateLogged(d.t, d.connection, log, d.options, d.registrations...)
}

// addFinalizer adds another client's finalizer to the object.
func (d *deletionRun) addFinalizer() {
	d.merge("ConfigMap", "c", `{"metadata":{"finalizers":["coming.example.org/finalizer","example.org/other"]}}`)
}

// removeFinalizers removes all finalizers.
func (d *deletionRun) removeFinalizers() { d.merge("ConfigMap", "c", `{"metadata":{"finalizers":[]}}`) }

// writes counts the patches of the operator.
func (d *deletionRun) writes() (n int) {
	for _, r := range d.connection.Requests() {
		if r.Verb == "patch" || r.Verb == "update" {
			n++
		}
	}
	return n
}

// TestOptionalDeletionsOfWhatDisappears shows that an optional deletion handler is called once for an object that
// disappears, unless the deletion was handled before (deviation D-optional-once).
func TestOptionalDeletionsOfWhatDisappears(t *testing.T) {
	failing := []error{laterError{5 * time.Second}, laterError{5 * time.Second}}
	deletion := handlers.Handler{ID: "d", Reason: cause.Delete}
	for name, tc := range map[string]struct {
		reason string
		own    reconcilers.Options
		errs   []error
		others []handlers.Handler
		act    func(d *deletionRun)
		writes int    // by the operator since the deletion
		want   string // without times in the case of a list, whose time is random
	}{
		"Unheld": {"the handler is called when an object without finalizers disappears", reconcilers.Options{}, nil,
			nil, func(d *deletionRun) {
				d.remove("ConfigMap", "c")
			}, 0, "1m0s delete o"},
		"Failing": {"the handler is not retried for a gone object", reconcilers.Options{}, failing, nil,
			func(d *deletionRun) {
				d.remove("ConfigMap", "c")
			}, 0, "1m0s delete o"},
		"Waiting": {"a handler that waits is not called again for a gone object",
			reconcilers.Options{}, []error{&execution.PendingError{Delay: 5 * time.Second}}, nil,
			func(d *deletionRun) { d.remove("ConfigMap", "c") }, 0, "1m0s delete o"},
		"HeldByOthers": {"the handler is called when others release the object", reconcilers.Options{}, nil, nil,
			func(d *deletionRun) {
				d.merge("ConfigMap", "c", `{"metadata":{"finalizers":["example.org/other"]}}`)
				d.remove("ConfigMap", "c")
				time.Sleep(time.Minute)
				d.removeFinalizers()
			}, 0, "2m0s delete o"},
		"Held": {"a handled deletion calls the handler once", reconcilers.Options{}, nil, []handlers.Handler{deletion},
			func(d *deletionRun) { d.remove("ConfigMap", "c") }, 1, "1m0s delete o; 1m0s delete d"},
		"HeldLonger": {"the handler is not called again when others release the object", reconcilers.Options{}, nil,
			[]handlers.Handler{deletion}, func(d *deletionRun) {
				d.addFinalizer()
				d.remove("ConfigMap", "c")
				time.Sleep(time.Minute)
				d.removeFinalizers()
			}, 1, "1m0s delete o; 1m0s delete d"},
		"HeldLongerThanTheProcess": {"the handler is not called again after a restart", reconcilers.Options{}, nil,
			[]handlers.Handler{deletion}, func(d *deletionRun) {
				d.addFinalizer()
				d.remove("ConfigMap", "c")
				time.Sleep(time.Minute)
				d.stop()
				d.start()
				time.Sleep(time.Minute)
				d.removeFinalizers()
			}, 0, "1m0s delete o; 1m0s delete d"},
		"Stripped": {"the handler is called for an object removed by force", reconcilers.Options{}, nil,
			[]handlers.Handler{deletion}, func(d *deletionRun) {
				d.server.Discard(memapi.Resource{Version: "v1", Plural: "configmaps"}, "default", "c")
			}, 0, "1m0s delete o"},
		"Down": {"the handler is not called for objects that disappear while the operator is down",
			reconcilers.Options{}, nil, nil,
			func(d *deletionRun) {
				d.stop()
				d.remove("ConfigMap", "c")
				d.start()
			}, 0, ""},
		"Relisted": {"the handler is called with the last known state after a relist",
			reconcilers.Options{Watching: reconcilers.Watching{ServerTimeout: 10 * time.Second}}, nil, nil,
			func(d *deletionRun) {
				d.down.Store(true)
				time.Sleep(30 * time.Second)
				d.remove("ConfigMap", "c")
				d.server.Compact()
				d.down.Store(false)
				time.Sleep(30 * time.Second)
			}, 0, "delete o"},
		"Replaced": {"two objects of one name are two calls", reconcilers.Options{}, nil, nil,
			func(d *deletionRun) {
				d.remove("ConfigMap", "c")
				d.create("ConfigMap", "c")
				time.Sleep(time.Minute)
				d.remove("ConfigMap", "c")
			}, 1, "1m0s delete o; 2m0s delete o"},
		"Kopf": {
			"with KopfDeletions, the handler is not called",
			reconcilers.Options{Settings: reconcilers.Settings{KopfDeletions: true}}, nil, nil,
			func(d *deletionRun) { d.remove("ConfigMap", "c") }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, server := &journal{startTime: time.Now()}, memapi.New()
				optional := j.recordedHandler(handlers.Handler{ID: "o", Reason: cause.Delete, Optional: true},
					tc.errs...)
				d := &deletionRun{directClient: newDirectClient(t, server), server: server, options: tc.own}
				d.registrations = append(d.registrations, registrationFor(t, "configmaps", &optional))
				for _, h := range tc.others {
					own := j.recordedHandler(h)
					d.registrations = append(d.registrations, registrationFor(t, "configmaps", &own))
				}
				d.start()
				d.create("ConfigMap", "c")
				time.Sleep(time.Until(j.startTime.Add(time.Minute)))
				d.connection.DrainRequests()
				tc.act(d)
				time.Sleep(time.Minute)
				if writes := d.writes(); writes != tc.writes {
					t.Errorf("%s: %d writes, want %d", tc.reason, writes, tc.writes)
				}
				d.stop()
				warned := strings.Contains(d.lines.String(), "Handler is not called again, as its object does not")
				if want := name == "Waiting"; warned != want {
					t.Errorf("%s: the log says that there is no other call: %t, want %t", tc.reason, warned, want)
				}
				got := j.String()
				if name == "Relisted" {
					_, got, _ = strings.Cut(got, " ")
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
