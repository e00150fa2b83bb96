// Command not-called has handlers that are not called, each for another reason.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

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
	websites.OnUpdate("rename", succeed)
	websites.OnResume("connect", succeed)
	websites.WithLabel("tier", "prod").OnCreate("announce", succeed)
	websites.When(isLong).OnCreate("shorten", succeed)
	websites.OnField("greet", "spec.title", succeed, kopf.NewValue("Good evening"))
	websites.OnCreate("upload", upload, kopf.Backoff(10*time.Minute))
	websites.OnCreate("register", register)
	return op
}

func succeed(context.Context, *Change) error { return nil }

func isLong(_ context.Context, w *v1.Website) bool { return len(strings.Fields(w.Spec.Title)) > 5 }

func upload(_ context.Context, c *Change) error {
	if c.Retry == 0 {
		return errors.New("the disk is full")
	}
	return nil
}

func register(context.Context, *Change) error {
	return kopf.Permanent(errors.New("the domain is reserved"))
}
