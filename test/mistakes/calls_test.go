package mistakes_test

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

var errBusy = errors.New("the cloud is busy")

// call is a mistake in a handler: the operator runs and logs an error.
type call struct {
	name    string
	handler kopf.ChangeFunc[*deployment]
}

var calls = []call{
	{"A bare number as a delay", func(_ context.Context, c *Change) error {
		if c.Retry == 0 {
			return kopf.Temporary(errBusy, 30)
		}
		return nil
	}},
	{"The object is changed, not patched", func(_ context.Context, c *Change) error {
		c.Object.Spec.Replicas = ptr.To[int32](3)
		return nil
	}},
	{"A sub-handler twice", func(_ context.Context, c *Change) error {
		c.Sub("step", roll)
		c.Sub("step", roll)
		return nil
	}},
	{"A sub-handler after none", func(_ context.Context, c *Change) error {
		c.Sub("restart", roll, kopf.After("upgrade"))
		return nil
	}},
	{"A result that is not JSON", func(_ context.Context, c *Change) error {
		c.SetResult(func() {})
		return nil
	}},
	{"A result that no handler has set", func(_ context.Context, c *Change) error {
		host, err := kopf.Result[string](c, "provision")
		c.SetResult(host)
		return err
	}},
	{"The values of no field", func(_ context.Context, c *Change) error {
		_, _ = kopf.FieldChange[int](c)
		return nil
	}},
	{"A patch that panics", func(_ context.Context, c *Change) error {
		c.Patch(func(d *deployment) { d.Spec.Template.Labels["a"] = "b" })
		return nil
	}},
	{"An outcome inside of a patch", func(_ context.Context, c *Change) error {
		c.Patch(func(d *deployment) { d.Labels = map[string]string{"step": string(c.Outcome("step").State)} })
		return nil
	}},
	{"A child twice, and not the same", func(ctx context.Context, c *Change) error {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
		if err := c.Ensure(ctx, config); err != nil {
			return err
		}
		config.Data = map[string]string{"step": "2"}
		return c.Ensure(ctx, config)
	}},
	{"A child of a kind that is not watched", func(_ context.Context, c *Change) error {
		ready := func(s *corev1.Service) bool { return s.Spec.ClusterIP != "" }
		return kopf.WaitFor(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}}, ready, time.Minute)
	}},
	{"A change that is made by hand", func(_ context.Context, c *Change) error {
		own := &Change{Object: c.Object}
		own.Patch(func(d *deployment) { d.Labels = nil })
		return nil
	}},
	{"An index that is made nowhere", func(_ context.Context, c *Change) error {
		var byOwner *kopf.Index[string, string]
		c.SetResult(byOwner.Get(c.Object.Name))
		return nil
	}},
	{"A permanent error of nothing", func(_ context.Context, c *Change) error {
		return kopf.Permanent(nil)
	}},
	{"A panic", func(_ context.Context, c *Change) error {
		var missing *Change
		return errors.New(missing.ID)
	}},
}
