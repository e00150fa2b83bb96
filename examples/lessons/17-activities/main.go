// Command 17-activities opens a connection before its handlers run, and closes it after them.
package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// operator has the connection. Its handlers are methods, so they need no global variable.
type operator struct {
	connection string
}

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	o := &operator{}
	op.OnStartup("configure", configure)
	op.OnStartup("connect", o.connect, kopf.Retries(5), kopf.Timeout(time.Minute))
	op.OnProbe("connection", o.probe)
	op.OnCleanup("disconnect", o.disconnect)
	kopf.For(op, &v1.Website{}).On("publish", kopf.CreateUpdateResume(), o.publish)
	return op
}

// configure changes a setting.
func configure(_ context.Context, a *kopf.Activity) error {
	a.Settings.Execution.DefaultBackoff = 10 * time.Second
	return nil
}

// connect fails at the first attempt. No handler of objects is called before it succeeds.
func (o *operator) connect(ctx context.Context, a *kopf.Activity) error {
	if a.Retry == 0 {
		return kopf.Temporary(errors.New("the storage is not ready"), 2*time.Second)
	}
	o.connection = "storage.example.org"
	log.FromContext(ctx).Info("Connected", "to", o.connection)
	return nil
}

func (o *operator) publish(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	log.FromContext(ctx).Info("Published", "title", c.Object.Spec.Title, "to", o.connection)
	return nil
}

// probe answers the question whether the process works. An error fails /healthz.
func (o *operator) probe(context.Context, *kopf.Activity) (any, error) {
	return o.connection, nil
}

// disconnect is called when no handler runs any more.
func (o *operator) disconnect(ctx context.Context, _ *kopf.Activity) error {
	log.FromContext(ctx).Info("Disconnected", "from", o.connection)
	return nil
}
