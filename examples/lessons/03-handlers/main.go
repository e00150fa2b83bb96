// Command 03-handlers has a handler for each cause.
package main

import (
	"context"

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
	websites.OnCreate("open", open)
	websites.OnUpdate("rename", rename)
	websites.OnResume("connect", connect)
	websites.OnDelete("close", closeSite)

	// One function for three causes. It has one id, and one record on the object.
	websites.On("publish", kopf.CreateUpdateResume(), publish)
	return op
}

// open is called once for each new website.
func open(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Opened", "title", c.Object.Spec.Title)
	return nil
}

// rename gets the website before the change, too.
func rename(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Renamed", "from", c.Old.Spec.Title, "to", c.Object.Spec.Title)
	return nil
}

// connect is called once in each process for each website that was handled before.
func connect(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Connected")
	return nil
}

// closeSite is called before a deleted website disappears.
func closeSite(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Closed")
	return nil
}

// publish declares the result: it does the same for each cause.
func publish(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Published", "cause", c.Reason)
	return nil
}
