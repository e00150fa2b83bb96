package explorer_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// TestFirstUsesOfKinds kills an operator while several of its goroutines discover kinds. The RESTMapper of
// controller-runtime holds a lock during discovery, and a killed life without an answer used to hold that lock forever.
func TestFirstUsesOfKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	explorer.Explore(t, func() explorer.Scenario {
		s := plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
			all.Daemon("watch", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				r.Info("Watching", "begins")
				settings := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: r.Latest().GetName() + "-settings"},
				}
				if err := r.Ensure(ctx, settings); err != nil {
					return err
				}
				<-r.Stopping()
				return nil
			})
		})()
		s.Play = func(p *explorer.Play) { p.Create(database("orders"), database("bills"), database("users")) }
		return s
	}, explorer.Courses(60))
}
