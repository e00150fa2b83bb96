// Command 13-children keeps a ConfigMap and a Deployment for each website.
package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one website.
type Change = kopf.Change[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})
	websites.On("serve", kopf.CreateUpdateResume(), serve)
	// Owns watches the children: they are repaired, reported to OnChild, and can be waited for.
	websites.Owns(&corev1.ConfigMap{})
	websites.Owns(&appsv1.Deployment{})
	kopf.OnChild(websites, "status", childChanged)
	return op
}

// serve declares the children. Ensure creates and changes them, and deletes those that are no longer declared.
func serve(ctx context.Context, c *Change) error {
	page := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name + "-page"},
		Data:       map[string]string{"index.html": c.Object.Spec.Title},
	}
	server := serverFor(c.Object)
	if err := c.Ensure(ctx, page, server); err != nil {
		return err
	}
	if err := kopf.WaitFor(c, server, isAvailable, 10*time.Minute); err != nil {
		return err
	}
	log.FromContext(ctx).Info("The website is online")
	return nil
}

func serverFor(w *v1.Website) *appsv1.Deployment {
	labels := map[string]string{"site": w.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func isAvailable(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0
}

// childChanged is called for each change of a Deployment that belongs to a website.
func childChanged(ctx context.Context, e *kopf.ChildEvent[*v1.Website, *appsv1.Deployment]) error {
	log.FromContext(ctx).Info("The server has changed", "available", e.Child.Status.AvailableReplicas)
	return nil
}
