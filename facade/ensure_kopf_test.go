package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestEnsureAsKopf shows that, with Kopf's names, the record of children is an annotation that Kopf ignores: it is
// not a change of the object, neither for this operator nor for Kopf after a return.
func TestEnsureAsKopf(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		calls := 0
		_, stop := h.runWith(kopf.AsKopf(), func(s houseSel) {
			s.On("ensure", nonDeleteReasons[:2], func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				calls++
				return ensure(ctx, c)
			})
		})
		h.createHouseAndWait("bath=1", "other/attic=1")
		house := h.house()
		annotations := house.GetAnnotations()
		if !strings.Contains(annotations["kopf.zalando.org/children-of.ensure"], "attic") {
			t.Errorf("the object has the record of children: got %v", annotations)
		}
		for name := range annotations {
			if !strings.HasPrefix(name, "kopf.zalando.org/") {
				t.Errorf("annotation %s does not have Kopf's prefix", name)
			}
		}
		if last := annotations["kopf.zalando.org/last-handled-configuration"]; strings.Contains(last, "children-of") {
			t.Errorf("the record is not part of the last-handled configuration: got %s", last)
		}
		if got := h.room("other", "attic").GetLabels()["kopf.zalando.org/parent-uid"]; got != string(house.GetUID()) {
			t.Errorf("a child in another namespace has the label of its parent: got %q", got)
		}
		h.changeRooms("bath=2")
		if calls != 2 || h.room("other", "attic") != nil {
			t.Errorf("the record causes no call, and the update prunes the child: got %d calls, child %v",
				calls, h.room("other", "attic"))
		}
		stop()
	})
}
