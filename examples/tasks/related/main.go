// Command related publishes websites with the text of a ConfigMap, which belongs to other users.
package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// directory has the values of one kind that handlers of the other one look up.
type directory struct {
	texts *kopf.Index[types.NamespacedName, string] // texts of ConfigMaps, by their names
	users *kopf.Index[types.NamespacedName, string] // names of websites, by the ConfigMap that they name
}

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites, footers := kopf.For(op, &v1.Website{}), kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("footer")
	d := &directory{
		texts: kopf.NewIndex(footers, "texts", textOf), users: kopf.NewIndex(websites, "users", userOf),
	}
	websites.On("publish", kopf.CreateUpdateResume(), d.publish)
	footers.OnEvent("wake", d.wake) // stores nothing on the ConfigMaps
	return op
}

func textOf(_ context.Context, m *corev1.ConfigMap) (map[types.NamespacedName]string, error) {
	return map[types.NamespacedName]string{client.ObjectKeyFromObject(m): m.Data["text"]}, nil
}

func userOf(_ context.Context, w *v1.Website) (map[types.NamespacedName]string, error) {
	return map[types.NamespacedName]string{footerOf(w): w.Name}, nil
}

// footerOf returns the name of the ConfigMap that an annotation of the website has.
func footerOf(w *v1.Website) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Annotations["footer"]}
}

// publish reads the text without a request.
func (d *directory) publish(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	text := strings.Join(d.texts.Get(footerOf(c.Object)), "")
	log.FromContext(ctx).Info("Published", "footer", text)
	return nil
}

// wake changes an annotation of each website that names the ConfigMap, so that publish is called for it.
func (d *directory) wake(ctx context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
	if e.Type == kopf.WatchEventListed {
		return nil // the operator starts, and publish is called for all websites
	}
	for _, name := range d.users.Get(client.ObjectKeyFromObject(e.Object)) {
		website := &v1.Website{}
		website.Namespace, website.Name = e.Object.Namespace, name
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"footer-version":%q}}}`, e.Object.ResourceVersion)
		log.FromContext(ctx).Info("Waking a website", "website", name)
		err := e.Client.Patch(ctx, website, client.RawPatch(types.MergePatchType, []byte(patch)))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
