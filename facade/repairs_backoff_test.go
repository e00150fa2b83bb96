package kopf_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestRepairDoublesItsDelay shows that the delays between repairs double from one second to five minutes, and start
// again with one second after ten minutes without a repair.
func TestRepairDoublesItsDelay(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		way, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.Owns(&corev1.ConfigMap{})
		})
		h.createHouseAndWait("bath=1")
		edit := func() {
			h.api.Edit(settings, "default", "bath", func(room map[string]any) {
				room["data"] = map[string]any{"value": "2"}
			})
		}
		var at []time.Time
		stubborn := 0
		way.After = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" && r.Resource.Plural == "configmaps" {
				at = append(at, time.Now())
				if stubborn--; stubborn > 0 {
					edit()
				}
			}
			return nil
		}
		for _, pause := range []time.Duration{0, 11 * time.Minute} {
			time.Sleep(pause)
			synctest.Wait()
			at, stubborn = []time.Time{time.Now()}, 12
			edit()
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			var delays []time.Duration
			for i := range at[1:] {
				delays = append(delays, at[i+1].Sub(at[i]).Round(time.Second))
			}
			want := []time.Duration{0}
			for _, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
				want = append(want, time.Duration(seconds)*time.Second)
			}
			if d := cmp.Diff(want, delays); d != "" {
				t.Errorf("after a pause of %s: delays between repairs, -want, +got:\n%s", pause, d)
			}
		}
		stop()
	})
}
