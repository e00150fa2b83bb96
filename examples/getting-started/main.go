// Command getting-started keeps a ConfigMap with a web page for each Website.
package main

import (
	"context"
	"html"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	websites.On("publish", kopf.CreateUpdateResume(), publish)
	websites.OnDelete("close", closeSite)
	// What Ensure does with the ConfigMaps, for the command manifests.
	op.Needs(
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get", "create", "patch", "delete"},
		},
		rbacv1.PolicyRule{
			APIGroups: []string{"websites.example.org"}, Resources: []string{"websites/finalizers"},
			Verbs: []string{"update"},
		},
	)
	return op
}

// publish is called for each new or changed website, and for each website when the operator starts.
func publish(ctx context.Context, c *Change) error {
	page := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name + "-page"},
		Data:       map[string]string{"index.html": "<h1>" + html.EscapeString(c.Object.Spec.Title) + "</h1>\n"},
	}
	if err := c.Ensure(ctx, page); err != nil {
		return err
	}
	c.Patch(func(w *v1.Website) { w.Status.Page = page.Name })
	log.FromContext(ctx).Info("Published the page", "title", c.Object.Spec.Title)
	return nil
}

// closeSite is called before a deleted website disappears.
func closeSite(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Closed the website", "title", c.Object.Spec.Title)
	return nil
}
