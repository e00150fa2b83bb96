package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const hiddenValue = "xyzzy-plugh"

// leaky registers handlers that expose a value in all possible ways.
func leaky[T client.Object](s kopf.Selection[T]) {
	tell := func(ctx context.Context, c *kopf.Change[T]) error {
		annotations := map[string]string{"leak": hiddenValue}
		c.Patch(func(object T) { object.SetAnnotations(annotations) })
		if err := c.Flush(ctx); err != nil {
			return err
		}
		c.Info("Leak", hiddenValue)
		_ = c.Client.List(ctx, &corev1.SecretList{}, client.MatchingFields{"data.a": hiddenValue})
		_ = c.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "leak-"},
			Data:       map[string]string{"a": hiddenValue},
		})
		return c.Client.Get(ctx, client.ObjectKey{Namespace: hiddenValue, Name: hiddenValue}, &corev1.Secret{})
	}
	s.OnCreate("tells", func(ctx context.Context, c *kopf.Change[T]) error {
		err := tell(ctx, c)
		return kopf.Temporary(fmt.Errorf("%s: %w", hiddenValue, err), time.Minute)
	}, kopf.Retries(2))
	s.OnCreate("panics", func(context.Context, *kopf.Change[T]) error { panic(hiddenValue) }, kopf.Retries(2))
	s.OnCreate("joins", func(context.Context, *kopf.Change[T]) error {
		return errors.Join(errors.New(hiddenValue), kopf.Permanent(fmt.Errorf("%s", hiddenValue)))
	})
	s.OnCreate("returns", func(_ context.Context, c *kopf.Change[T]) error {
		c.SetResult(hiddenValue)
		return nil
	})
	s.OnEvent("hears", func(context.Context, *kopf.WatchEvent[T]) error { return errors.New(hiddenValue) })
	s.Timer("ticks", time.Minute, func(context.Context, *kopf.Task[T]) error { return errors.New(hiddenValue) })
}

// TestNoValueIsInASpan shows that values of Secrets, of redacted fields and of other fields are not in any span,
// whatever handlers do with them.
func TestNoValueIsInASpan(t *testing.T) {
	secrets := memapi.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	onServer(t, func(t *testing.T, server *memapi.Server) {
		for _, kind := range []memapi.Resource{secrets, settings} {
			server.Put(kind, map[string]any{
				"metadata": map[string]any{
					"namespace": "default", "name": "one", "annotations": map[string]any{"own": hiddenValue},
				},
				"data": map[string]any{"a": hiddenValue}, "spec": map[string]any{"a": hiddenValue},
			})
		}
		traces, recorder := tracer()
		op, maps := tracedMaps(kopf.Settings{Tracing: traces})
		leaky(maps.Redacted("data"))
		leaky(kopf.For(op, &corev1.Secret{}))
		traceRun(t, server, op, 10*time.Minute)
		if len(endedAttempts(recorder)) < 20 || len(recorder.Ended()) < len(endedAttempts(recorder))+8 {
			t.Fatalf("only %d spans of attempts, %d in all: too few to show anything", len(endedAttempts(recorder)),
				len(recorder.Ended()))
		}
		for _, span := range tracetest.SpanStubsFromReadOnlySpans(recorder.Ended()) {
			text, err := json.Marshal(span)
			if err != nil {
				t.Fatal(err)
			}
			if all := string(text) + fmt.Sprintf("%+v", span); strings.Contains(all, hiddenValue) {
				t.Errorf("a value is in a span: %s", text)
			}
		}
	})
}
