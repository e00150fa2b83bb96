// Command 14-conditions reports the state of each website by conditions.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
	websites.Conditions() // Ready, Reconciling and Stalled follow the outcomes of the handlers
	websites.On("publish", kopf.CreateUpdateResume(), publish)
	return op
}

func publish(_ context.Context, c *Change) error {
	switch {
	case strings.Contains(c.Object.Spec.Title, "<"):
		return kopf.Permanent(errors.New("the title contains HTML"))
	case c.Retry == 0:
		return kopf.Temporary(errors.New("the disk is full"), 5*time.Second)
	}
	c.Condition("PagePublished", metav1.ConditionTrue, "Uploaded", "the page has the title "+c.Object.Spec.Title)
	return nil
}
