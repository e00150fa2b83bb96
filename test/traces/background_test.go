package traces_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

func timer(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.Timer("check", 20*time.Second, func(_ context.Context, r *Task) error {
			kopf.PatchField(r, "status.checks", kopf.GetFieldOr(r.Object, "status.checks", 0)+1)
			return nil
		})
	})
	create(s, 50*time.Second)
}

func daemon(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.Daemon("watch", func(ctx context.Context, r *Task) error {
			kopf.PatchField(r, "status.phase", "Watched")
			if err := r.Flush(ctx); err != nil {
				return err
			}
			<-r.Stopping()
			time.Sleep(time.Second)
			return nil
		}, kopf.CancelBackoff(5*time.Second))
	})
	create(s, settleTime)
	remove(s, settleTime)
}

func eventHandler(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnEvent("label", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
			if e.Type == kopf.WatchEventDeleted {
				return nil
			}
			kopf.PatchField(e, "metadata.labels.size", fmt.Sprint(kopf.GetFieldOr(e.Object, "spec.size", 0)))
			return nil
		})
	})
	create(s, settleTime)
	edit(s, "The user resizes it.", settleTime, `{"spec":{"size":2}}`)
	remove(s, settleTime)
}

// configMap is a child.
func configMap(name string, size int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
		"data": map[string]any{"size": fmt.Sprint(size)},
	}}
}

func children(s *traces.Story) {
	s.Server.CollectGarbage(time.Second)
	start(s, kopf.Settings{}, func(all Widgets) {
		all.Owns(configMap("", 0))
		all.On("children", kopf.CreateUpdateResume(), func(ctx context.Context, c *Change) error {
			size := kopf.GetFieldOr(c.Object, "spec.size", 0)
			wanted := []any{configMap("first", size)}
			if size < 2 {
				wanted = append(wanted, configMap("second", size))
			}
			return c.Ensure(ctx, wanted...)
		})
	})
	create(s, settleTime)
	edit(s, "The user resizes it, and the second child is not declared any more.", settleTime, `{"spec":{"size":2}}`)
	s.Step("A user changes the first child.", settleTime, func() {
		s.Send("PATCH", "/api/v1/namespaces/default/configmaps/first", `{"data":{"size":"9"}}`)
	})
	remove(s, settleTime)
}
