// Command 05-patching writes to the objects that it handles.
package main

import (
	"context"
	"time"

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
	websites.OnCreate("mark", mark)
	websites.OnCreate("page", page)
	websites.OnUpdate("report", report)
	return op
}

// mark changes the object by a function. Only the fields that the function changes are written.
func mark(_ context.Context, c *Change) error {
	c.Patch(func(w *v1.Website) {
		metav1.SetMetaDataLabel(&w.ObjectMeta, "published", "no")
	})
	return nil
}

// page returns a result, which is stored in status.page: the id of the handler is "page".
func page(ctx context.Context, c *Change) error {
	if err := c.Flush(ctx); err != nil { // writes the patches of mark and of this handler now
		return err
	}
	time.Sleep(2 * time.Second) // a slow upload
	c.Patch(func(w *v1.Website) {
		metav1.SetMetaDataLabel(&w.ObjectMeta, "published", "yes")
	})
	c.SetResult(c.Object.Name + "-page")
	return nil
}

// report reads the result of another handler.
func report(ctx context.Context, c *Change) error {
	page, err := kopf.Result[string](c, "page")
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("The page has a new title", "page", page, "title", c.Object.Spec.Title)
	return nil
}
