// Command 16-events posts Kubernetes events about websites, and writes to the log.
package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
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
	return op
}

// publish reports to two audiences: events are for users of the object, the log is for the people who run the operator.
func publish(ctx context.Context, c *Change) error {
	logger := log.FromContext(ctx)
	if c.Retry == 0 {
		err := errors.New("the disk is full")
		c.Exception("UploadFailed", "The page is not online yet:", err)
		return kopf.Temporary(err, 5*time.Second)
	}
	if len(c.Object.Spec.Title) > 10 {
		c.Warn("LongTitle", "Search engines cut the title")
		slog.New(logr.ToSlogHandler(logger)).Warn("The title is long", "length", len(c.Object.Spec.Title))
	}
	c.Info("Published", "The page is online")
	logger.Info("Published", "title", c.Object.Spec.Title)
	return nil
}
