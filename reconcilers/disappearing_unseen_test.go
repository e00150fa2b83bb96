package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// dependent makes every object need the finalizer.
type dependent struct{}

func (dependent) HasDependents(map[string]any) bool { return true }

func (dependent) Release(context.Context, map[string]any) error { return nil }

func (dependent) Forget(types.UID) {}

// TestOptionalDeletionsOfWhatDisappearsUnseen shows that an optional deletion handler called by a former process is not
// called again if the object disappears before the first pass of this process (deviation D-optional-once).
func TestOptionalDeletionsOfWhatDisappearsUnseen(t *testing.T) {
	deletion := handlers.Handler{ID: "d", Reason: cause.Delete}
	for name, tc := range map[string]struct {
		reason string
		own    reconcilers.Options
		others []handlers.Handler
		down   bool // no process runs when the object is deleted
		want   string
	}{
		"Required": {
			"the handler is not called again if a required handler held the object", reconcilers.Options{},
			[]handlers.Handler{deletion}, false,
			"1m0s delete o; 1m0s delete d",
		},
		"Timer": {
			"the handler is not called again if a timer held the object", reconcilers.Options{},
			[]handlers.Handler{*timer("b", time.Hour, succeed)}, false, "1m0s delete o",
		},
		"Dependents": {
			"the handler is not called again if dependents held the object",
			reconcilers.Options{Dependents: dependent{}}, nil, false,
			"1m0s delete o",
		},
		"Unheld": {"the handler is called if nothing of the operator held the object", reconcilers.Options{}, nil,
			false, "3m0s delete o"},
		"Stripped": {
			"the handler is called if no process has handled the deletion", reconcilers.Options{},
			[]handlers.Handler{deletion}, true, "3m0s delete o",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, server := &journal{startTime: time.Now()}, memapi.New()
				optional := j.recordedHandler(handlers.Handler{ID: "o", Reason: cause.Delete, Optional: true})
				_, filling := byName()
				d := &deletionRun{directClient: newDirectClient(t, server), server: server, options: tc.own}
				d.registrations = append(d.registrations, registrationFor(t, "configmaps", &optional),
					registrationFor(t, "secrets", filling))
				for _, own := range tc.others {
					if own.Reason == cause.Delete {
						own = j.recordedHandler(own)
					}
					d.registrations = append(d.registrations, registrationFor(t, "configmaps", &own))
				}
				d.start()
				d.create("ConfigMap", "c")
				time.Sleep(time.Second)
				d.addFinalizer()
				time.Sleep(time.Until(j.startTime.Add(time.Minute)))
				if tc.down {
					d.stop()
				}
				d.remove("ConfigMap", "c")
				time.Sleep(time.Minute)
				if !tc.down {
					d.stop()
				}
				d.connection = delayLists(server, "secrets", steady(time.Minute)) // passes wait for the index
				d.stop = operateAll(t, d.connection, d.options, d.registrations...)
				time.Sleep(30 * time.Second)
				d.removeFinalizers()
				time.Sleep(5 * time.Minute)
				d.stop()
				if diff := cmp.Diff(tc.want, j.String()); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
