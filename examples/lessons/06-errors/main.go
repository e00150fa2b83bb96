// Command 06-errors shows the effect of each kind of error.
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

// Change is one change of one website.
type Change = kopf.Change[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})
	websites.OnCreate("wait", wait)
	websites.OnCreate("check", check)
	websites.OnCreate("upload", upload, kopf.Backoff(10*time.Second), kopf.Retries(3))
	websites.OnCreate("render", render, kopf.Backoff(20*time.Second), kopf.Timeout(50*time.Second))
	return op
}

// wait is called again after the delay that it returns.
func wait(ctx context.Context, c *Change) error {
	if c.Retry < 1 {
		return kopf.Temporary(errors.New("the domain is not registered yet"), 30*time.Second)
	}
	log.FromContext(ctx).Info("The domain is registered")
	return nil
}

// check gives up: retries cannot help.
func check(context.Context, *Change) error {
	return kopf.Permanent(errors.New("the title is not unique"))
}

// upload returns an ordinary error. It is called again after its backoff, three times in all.
func upload(context.Context, *Change) error {
	return errors.New("the disk is full")
}

// render fails for 50 seconds. A call at 60 seconds would be too late.
func render(context.Context, *Change) error {
	return errors.New("the template is missing")
}
