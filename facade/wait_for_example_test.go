package kopf_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// A handler that needs a child to get somewhere ends, and is called again from its start when that is so.
func ExampleWaitFor() {
	op := kopf.New("addresses.example.org")
	wanted := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("address=wanted")
	wanted.Owns(&corev1.Service{})

	wanted.OnCreate("allocate", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		service.Name = c.Object.Name
		if err := c.Ensure(ctx, service); err != nil {
			return err
		}
		address := ""
		err := kopf.WaitFor(c, service, func(s *corev1.Service) bool {
			for _, ingress := range s.Status.LoadBalancer.Ingress {
				address = ingress.IP
			}
			return address != ""
		}, 5*time.Minute)
		if err != nil {
			return err
		}
		c.Patch(func(m *corev1.ConfigMap) { m.Data = map[string]string{"address": address} })
		return nil
	})
}
