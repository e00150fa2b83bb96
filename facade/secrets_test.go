package kopf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// The values that must not be found, by their origin. Only the tests have such texts.
const (
	secretInValue      = "xyzzyPlughSecret" // it is base64, too
	secretInAnnotation = "xyzzy-in-an-annotation"
	secretInError      = "xyzzy-in-an-error"
	secretInResult     = "xyzzy-in-a-result"
)

// secretTexts maps the values to their names in the docs.
var secretTexts = map[string]string{
	secretInValue: "value", secretInAnnotation: "annotation", secretInError: "error", secretInResult: "result",
}

// registerSecretHandlers registers handlers that read the values in every way, fail with them, and return them.
func registerSecretHandlers[T client.Object](s kopf.Selection[T], value func(T) string) {
	fail := func(context.Context, *kopf.Change[T]) error {
		return kopf.Temporary(errors.New(secretInError), time.Minute)
	}
	s.OnCreate("fails", fail, kopf.Retries(3))
	s.OnCreate("reads", func(_ context.Context, c *kopf.Change[T]) error {
		if value(c.Object) == "" {
			return errors.New("there is no value")
		}
		c.SetResult(secretInResult)
		return nil
	})
	s.OnCreate("panics", func(context.Context, *kopf.Change[T]) error { panic(secretInError) }, kopf.Retries(1))
	s.OnField("sees", "data.password", func(context.Context, *kopf.Change[T]) error { return nil })
	s.OnCreate("demands", func(context.Context, *kopf.Change[T]) error { return nil },
		kopf.InField("data.password"), kopf.Value(secretInValue+"More"))
	s.WithAnnotation("token", "another "+secretInAnnotation).OnUpdate("other",
		func(context.Context, *kopf.Change[T]) error { return nil })
	s.OnEvent("hears", func(context.Context, *kopf.WatchEvent[T]) error { return errors.New(secretInError) })
	s.Timer("ticks", time.Minute, func(context.Context, *kopf.Task[T]) error { return errors.New(secretInError) })
}

// observedOperator is an operator with all its outputs.
type observedOperator struct {
	log      lines
	metrics  *prometheus.Registry
	recorder *tracetest.SpanRecorder
	server   *memapi.Server
	explain  http.Handler
	kind     string
}

// outputTexts returns the texts of all outputs, by output.
func (w *observedOperator) outputTexts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"log": strings.Join(w.log.with(""), "\n")}
	_, all["journal"] = answerTo(w.explain, "/explain?kind="+w.kind+"&namespace=default&name=one")
	_, text := answerTo(w.explain, "/explain?output=text&kind="+w.kind+"&namespace=default&name=one")
	_, standing := answerTo(w.explain, "/standing")
	all["journal"] += text + standing
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var metrics bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&metrics, family); err != nil {
			t.Fatal(err)
		}
	}
	all["metrics"] = metrics.String()
	spans, err := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(w.recorder.Ended()))
	if err != nil {
		t.Fatal(err)
	}
	all["traces"] = string(spans)
	all["events"] = w.events(t)
	return all
}

func (w *observedOperator) events(t *testing.T) string {
	t.Helper()
	reader, err := memapi.NewClient(w.server, memapi.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	events := &unstructured.UnstructuredList{}
	events.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	if err := reader.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(events.Items)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSecretsStayHidden shows that values of Secrets and of redacted fields are not in any output, whatever the
// handlers require of them. The texts of errors are only where the docs say. A kind without redaction proves that the
// test can find all values.
func TestSecretsStayHidden(t *testing.T) {
	secrets := memapi.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	password := func(s *corev1.ConfigMap) string { return s.Data["password"] }
	errorAlone := []string{"error in events", "error in log"}
	everywhere := append([]string{
		"annotation in journal", "error in journal", "value in journal",
	}, errorAlone...)
	for name, c := range map[string]struct {
		reason   string
		kind     memapi.Resource
		register func(op *kopf.Operator)
		want     []string
	}{
		"Secret": {
			"all values of Secrets are hidden", secrets, func(op *kopf.Operator) {
				read := func(s *corev1.Secret) string { return string(s.Data["password"]) }
				registerSecretHandlers(kopf.For(op, &corev1.Secret{}), read)
			}, errorAlone,
		},
		"Redacted": {
			"the values of redacted fields are hidden", settings, func(op *kopf.Operator) {
				maps := kopf.For(op, &corev1.ConfigMap{}).Redacted("data.password", "metadata.annotations.token")
				registerSecretHandlers(maps, password)
			}, errorAlone,
		},
		"Plain": {
			"the journal shows the values that filters found if they are not redacted", settings,
			func(op *kopf.Operator) {
				registerSecretHandlers(kopf.For(op, &corev1.ConfigMap{}), password)
			}, everywhere,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &observedOperator{metrics: prometheus.NewRegistry(), server: memapi.New(), kind: c.kind.Kind}
				w.server.Put(c.kind, map[string]any{
					"metadata": map[string]any{
						"namespace": "default", "name": "one",
						"annotations": map[string]any{"token": secretInAnnotation},
					},
					"data": map[string]any{"password": secretInValue},
				})
				w.runObserved(t, c.register)
				var found []string
				for teller, text := range w.outputTexts(t) {
					if text == "" {
						t.Errorf("the output %s is empty", teller)
					}
					for value, what := range secretTexts {
						if strings.Contains(text, value) {
							found = append(found, what+" in "+teller)
						}
					}
				}
				slices.Sort(found)
				want := slices.Sorted(slices.Values(c.want))
				if d := cmp.Diff(want, found); d != "" {
					t.Errorf("%s (-want, +got):\n%s", c.reason, d)
				}
			})
		})
	}
}

// runObserved runs the operator with all its outputs.
func (w *observedOperator) runObserved(t *testing.T, register func(op *kopf.Operator)) {
	t.Helper()
	traces, recorder := tracer()
	w.recorder = recorder
	op := kopf.New("secretive.example.org", kopf.Settings{
		Tracing: traces, Peering: kopf.PeeringSettings{Standalone: true},
		Posting: kopf.PostingSettings{Loggers: true},
	})
	register(op)
	w.explain = op.ExplainHandler()
	// The verbosity of --debug. From 8 on, client-go logs all bodies, including secret ones.
	log := funcr.New(w.log.add, funcr.Options{Verbosity: 5})
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(w.server)),
		facadetest.Settings(kopf.RunSettings{Log: log, Metrics: w.metrics}))
	r.Ready()
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}
