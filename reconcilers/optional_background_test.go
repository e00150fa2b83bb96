package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestOptionalBackground shows that optional daemons and timers add no finalizer, and that only deletion handlers wait
// for them. They end when the object is deleted or has disappeared.
func TestOptionalBackground(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	deletion := handlers.Handler{ID: "del", Reason: cause.Delete}
	for name, tc := range map[string]struct {
		reason string
		others []handlers.Handler
		lasts  time.Duration // after the stop signal
		act    func(d *deletionRun)
		writes int
		want   string
	}{
		"Unheld": {"an object with only an optional daemon is deleted at once", nil, 20 * time.Second,
			func(d *deletionRun) {
				d.remove("ConfigMap", "c")
			}, 0, "0s begins; 1m0s gone; 1m20s ends: the object is deleted"},
		"HeldByOthers": {"the deletion stops the daemon, even if others hold the object", nil, 0,
			func(d *deletionRun) {
				d.merge("ConfigMap", "c", `{"metadata":{"finalizers":["example.org/other"]}}`)
				d.remove("ConfigMap", "c")
				time.Sleep(30 * time.Second)
				d.removeFinalizers()
			}, 0, "0s begins; 1m0s ends: the object is deleted; 1m30s gone"},
		"Held": {"deletion handlers wait for the daemon", []handlers.Handler{deletion}, 20 * time.Second,
			func(d *deletionRun) {
				d.remove("ConfigMap", "c")
			}, 3, "0s begins; 1m20s ends: the object is deleted; 1m20s delete del; 1m20s gone"},
		"Relisted": {"a list without the object stops the daemon", nil, 0, func(d *deletionRun) {
			d.down.Store(true)
			time.Sleep(30 * time.Second)
			d.remove("ConfigMap", "c")
			d.server.Compact()
			time.Sleep(30 * time.Second)
			d.down.Store(false)
			time.Sleep(time.Minute)
		}, 0, "0s begins; 1m30s gone; ends: the object is deleted"},
		"Unmatched": {"the daemon stops when the object does not match any more", nil, 0, func(d *deletionRun) {
			d.label("ConfigMap", "c", "off")
		}, 0, "0s begins; 1m0s ends: the object does not match the filters any more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, server := &journal{startTime: time.Now()}, memapi.New()
				optional := daemon("o", handlers.BackgroundOptions{},
					func(_ context.Context, c *handlers.Invocation) error {
						j.add("begins")
						<-c.LiveObject.Stopping()
						time.Sleep(tc.lasts)
						text := "ends: " + c.LiveObject.StopReason().Error()
						if name == "Relisted" {
							j.addUntimed(text)
							return nil
						}
						j.add(text)
						return nil
					})
				optional.Optional, optional.Filters = true, []handlers.Filter{unlessOff}
				d := &deletionRun{directClient: newDirectClient(t, server), server: server,
					registrations: []reconcilers.Registration{
						registrationFor(t, "configmaps", optional), registrationFor(t, "configmaps", optionalTimer()),
					}}
				d.options.Watching.ServerTimeout = 10 * time.Second
				for _, h := range tc.others {
					own := j.recordedHandler(h)
					d.registrations = append(d.registrations, registrationFor(t, "configmaps", &own))
				}
				d.start()
				d.create("ConfigMap", "c")
				go d.noteEnd(j)
				time.Sleep(time.Until(j.startTime.Add(time.Minute)))
				tc.act(d)
				time.Sleep(time.Minute)
				if writes := d.writes(); writes != tc.writes {
					t.Errorf("%s: %d writes, want %d", tc.reason, writes, tc.writes)
				}
				d.stop()
				time.Sleep(10 * time.Minute)
				if diff := cmp.Diff(tc.want, j.String()); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// optionalTimer returns an optional timer without any effect.
func optionalTimer() *handlers.Handler {
	h := timer("t", time.Second, succeed)
	h.Optional, h.Filters = true, []handlers.Filter{unlessOff}
	return h
}

func unlessOff(_ context.Context, c *cause.Cause) (bool, error) {
	return c.Object.MappingAt("metadata", "labels")["l"] != "off", nil
}

// noteEnd records when the object is gone, for some minutes.
func (d *deletionRun) noteEnd(j *journal) {
	for range 5000 {
		time.Sleep(100 * time.Millisecond)
		if d.get("ConfigMap", "c") == nil {
			j.add("gone")
			return
		}
	}
}

func (j *journal) addUntimed(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, what)
}
