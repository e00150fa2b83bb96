package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Under Kopf's own names, the record is among those annotations that Kopf takes for its own: it is no change of the
// object, neither to us nor to a Kopf that takes the object back.
func TestEnsureAsKopf(t *testing.T) {
	inHousehold(t, func(h household) {
		calls := 0
		_, stop := h.runWith(kopf.AsKopf(), func(s houseSel) {
			s.On("ensure", always[:2], func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				calls++
				return ensure(ctx, c)
			})
		})
		h.build("bath=1", "other/attic=1")
		house := h.house()
		annotations := house.GetAnnotations()
		if !strings.Contains(annotations["kopf.zalando.org/children-of.ensure"], "attic") {
			t.Errorf("the record is missing: %v", annotations)
		}
		for name := range annotations {
			if !strings.HasPrefix(name, "kopf.zalando.org/") {
				t.Errorf("annotation %s is none of Kopf's", name)
			}
		}
		if last := annotations["kopf.zalando.org/last-handled-configuration"]; strings.Contains(last, "children-of") {
			t.Errorf("the record is a part of what was handled: %s", last)
		}
		if got := h.room("other", "attic").GetLabels()["kopf.zalando.org/parent-uid"]; got != string(house.GetUID()) {
			t.Errorf("the label of the child elsewhere is %q", got)
		}
		h.rebuild("bath=2")
		if calls != 2 || h.room("other", "attic") != nil {
			t.Errorf("%d calls for a creation and an update; the other child is %v", calls, h.room("other", "attic"))
		}
		stop()
	})
}
