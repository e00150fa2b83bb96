package kopf_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestIndicesAndAdmissionInPause shows that indices contain a paused object as it is, and that admission handlers are
// called for it, while its other handlers are not.
func TestIndicesAndAdmissionInPause(t *testing.T) {
	inControlled(t, kopf.Settings{}, func(c *controlled) {
		var bySize *kopf.Index[int32, string]
		r := c.run(func(s kopf.Selection[*Widget]) {
			s.OnUpdate("changed", c.noting("changed", nil))
			s.Validate("limit", func(_ context.Context, a *kopf.Admission[*Widget]) error {
				if size := a.Object.Spec.Size; size > 5 {
					return kopf.Deny(http.StatusForbidden, "size %d is too large", size)
				}
				return nil
			})
			bySize = kopf.NewIndex(s, "by-size", func(_ context.Context, w *Widget) (map[int32]string, error) {
				return map[int32]string{w.Spec.Size: w.Name}, nil
			})
		})
		user, err := client.New(memapi.Config(c.server.Connect()), client.Options{Scheme: newScheme(c.T)})
		if err != nil {
			c.Fatal(err)
		}
		resize := func(size int) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
			err := user.Patch(c.Context(), &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w1"}}, patch)
			c.wait()
			return err
		}
		c.annotate("paused", "true")
		if err := resize(3); err != nil || !bySize.Has(3) || bySize.Has(1) {
			c.Errorf("the index follows a paused object: %v, error %v", slices.Collect(bySize.Keys()), err)
		}
		if err := resize(9); err == nil || !strings.Contains(err.Error(), "size 9 is too large") {
			c.Errorf("a paused object is reviewed: got %v", err)
		}
		c.requireCalls("in the pause")
		c.annotate("paused", "")
		c.requireCalls("after the pause", "update changed")
		r.stop()
	})
}
