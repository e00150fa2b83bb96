package reconcilers_test

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// labelled returns whether the newest state of the object has a label.
func labelled(c *handlers.Invocation) bool {
	known := unstructured.Unstructured{Object: c.Cause.Body()}
	latest := c.LatestState.Latest(types.NamespacedName{Namespace: "default", Name: known.GetName()}, known.GetUID())
	return (&unstructured.Unstructured{Object: latest}).GetLabels()["l"] != ""
}

// skipPause returns a function that waits for the label, and records how and when the wait ended.
func skipPause(j *journal) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for !labelled(c) && ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		if ctx.Err() != nil {
			j.add(c.Handler.ID + " ended: " + context.Cause(ctx).Error())
			return context.Cause(ctx)
		}
		j.add(c.Handler.ID + " saw the label of one of " + c.Resource.Plural)
		return nil
	}
}
