package kopf_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Ready, Reconciling and Stalled follow from what the handlers return, so that kubectl wait --for=condition=Ready
// works. A condition of one's own stands beside them, here that of a Service which a timer looks after.
func ExampleSelection_Conditions() {
	op := kopf.New("addresses.example.org")
	services := kopf.For(op, &corev1.Service{}).MatchingLabels("address=wanted")
	services.Conditions()

	services.OnCreate("allocate", func(ctx context.Context, c *kopf.Change[*corev1.Service]) error {
		_, err := allocate(ctx, c.Object.Name)
		return err // Ready is False for as long as there is one, and the message has it
	})
	services.Timer("probe", time.Minute, func(_ context.Context, r *kopf.Task[*corev1.Service]) error {
		if r.Latest().Spec.ClusterIP == "" {
			r.Condition("Reachable", metav1.ConditionFalse, "NoAddress", "it has no address yet")
			return nil
		}
		r.Condition("Reachable", metav1.ConditionTrue, "Answers", "")
		return nil
	})
}
