package kopf_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// The handler ends while the child is not ready, and runs again from its start. The operator needs Owns for the kind.
func ExampleWaitFor() {
	allocate := func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		service.Name = c.Object.Name
		if err := c.Ensure(ctx, service); err != nil {
			return err
		}
		hasAddress := func(s *corev1.Service) bool { return len(s.Status.LoadBalancer.Ingress) > 0 }
		if err := kopf.WaitFor(c, service, hasAddress, 5*time.Minute); err != nil {
			return err
		}
		c.Info("Allocated", "the service has an address")
		return nil
	}

	owner := &corev1.ConfigMap{}
	owner.Namespace, owner.Name = "default", "web"
	cluster := facadetest.Client(fake.NewClientBuilder().Build())
	got := facadetest.NewChange(owner, cluster, facadetest.Owns(&corev1.Service{})).
		Call(context.Background(), allocate)
	fmt.Println(got.Awaited, got.Final, got.Children)
	// Output: Service web false [Service default/web]
}
