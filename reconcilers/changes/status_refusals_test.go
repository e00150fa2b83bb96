package changes_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// onlyStatusNumbers is a schema in which status.size must be a number.
func onlyStatusNumbers(body map[string]any) error {
	switch at(body, "status", "size").(type) {
	case nil, int64:
		return nil
	}
	return memapi.NewRefusal(422, "status.size")
}

// serverError returns an error answer with code 500 and the text.
func serverError(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Message: text,
	}}
}

// TestRefusedStatuses shows that a refused write of /status is handled like one of the main resource.
func TestRefusedStatuses(t *testing.T) {
	bad, other := patches("big", "status", "size"), patches("x", "status", "id")
	run(t, map[string]scenario{
		"Blamed": {"a handler whose status is refused is retried, and its other changes are kept", func(w *harness) {
			w.serveStatus(true)
			w.schema = onlyStatusNumbers
			p := w.start(onCreate("a", all(bad, patches("x", "metadata", "labels", "id")), retries(2)))
			_, _ = p.pass()
			w.wantWrites("the refusal, the search, the record", "status 422", "status 422", "main 200", "main 200")
			w.want("attempts", int64(1), w.record("a", "retries"))
			w.want("success", false, w.record("a", "success"))
			w.wantAt("after one pass", "x", "metadata", "labels", "id")
			p.settle()
			w.wantCalls("all", "0s create a", "1m0s create a")
			w.wantHandled("all", "one")
			w.want("errors", []error(nil), p.errs)
			if !w.hasLogged("refused the changes of a handler", `"handler"="a"`) {
				w.t.Errorf("the refusal is not logged: %v", w.logLines)
			}
		}},
		"Others": {"other handlers of a refused status write succeed, and their status is kept", func(w *harness) {
			w.serveStatus(true)
			w.schema = onlyStatusNumbers
			p := w.start(onCreate("a", other), onCreate("b", bad, retries(2)), onCreate("c", returns("r")))
			_, _ = p.pass()
			w.wantAt("after one pass", "x", "status", "id")
			w.wantAt("after one pass", "r", "status", "c")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create c", "1m0s create b")
			w.wantClean("all")
		}},
		"Result": {"a handler whose result is refused is retried", func(w *harness) {
			w.serveStatus(true)
			w.schema = onlyStatusNumbers
			w.start(onCreate("size", returns("big"), retries(2)), onCreate("b", ok)).settle()
			w.wantCalls("all", "0s create size", "0s create b", "1m0s create size")
			w.want("status", nil, w.at("status", "size"))
		}},
		"Conditions": {"the conditions report the failure after a refusal, not the success before it",
			func(w *harness) {
				w.withStatus()
				w.schema = onlyStatusNumbers
				p := w.startReporting(nil, onCreate("a", bad, retries(2)), onCreate("b", other))
				_, _ = p.pass()
				w.wantConditions("after one pass", "False", "True", nil)
				w.wantAt("after one pass", "x", "status", "id")
				p.settle()
				w.wantConditions("after the last attempt", "False", nil, "True")
				p.wantRefusals("the conditions were accepted", false, "")
			}},
		"SubHandler": {"a handler waits for its refused sub-handler as after any other failure",
			func(w *harness) {
				w.serveStatus(true)
				w.schema = onlyStatusNumbers
				noted := func(id string, fn handlers.Func) *handlers.Handler {
					return sub(id, func(ctx context.Context, c *handlers.Invocation) error {
						w.called(c.Cause, c.Handler.ID)
						return fn(ctx, c)
					})
				}
				part := noted("s", bad)
				retries(2)(part)
				w.start(onCreate("a", runs(part, noted("t", other)))).settle()
				w.wantCalls("all",
					"0s create a", "0s create a/s", "0s create a/t", "1m0s create a", "1m0s create a/s")
				w.wantAt("all", "x", "status", "id")
				w.wantHandled("all", "one")
			}},
		"Flushed": {"a refused flush writes nothing, and the handler can replace the value", func(w *harness) {
			w.serveStatus(true)
			w.schema = onlyStatusNumbers
			var told error
			w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				_ = all(bad, patches("x", "metadata", "labels", "id"))(ctx, c)
				told = c.Writer.Flush(ctx)
				w.want("label", nil, w.at("metadata", "labels", "id"))
				return patches(int64(1), "status", "size")(ctx, c)
			})).settle()
			if told == nil {
				w.t.Error("the flush succeeded, want an error")
			}
			w.wantCalls("all", "0s create a")
			w.wantAt("all", int64(1), "status", "size")
			w.wantAt("all", "x", "metadata", "labels", "id")
		}},
		"Nobody": {"a refused status that no handler has caused does not block the main write", func(w *harness) {
			w.serveStatus(true)
			w.schema = func(body map[string]any) error {
				if at(body, "status", "a") != nil && at(body, "status", "b") == nil {
					return memapi.NewRefusal(422, "status")
				}
				return nil
			}
			p := w.start(onCreate("a", returns("r"), retries(1)), onCreate("b", fails(1, temporaryError{time.Hour})))
			_, _ = p.pass()
			w.want("attempts of b", int64(1), w.record("b", "retries"))
			w.want("errors", []error(nil), p.errs)
		}},
	})
}

// TestDecidedOutcomes shows that the outcome after the write is counted and observed.
func TestDecidedOutcomes(t *testing.T) {
	bad, good := patches("big", "status", "size"), patches(int64(1), "status", "size")
	for name, tc := range map[string]struct {
		reason string
		fn     handlers.Func
		want   []string
	}{
		"Refused": {"a refused success counts as a retry", bad, []string{"retry", "failure"}},
		"Written": {"an accepted success counts as a success", good, []string{"success"}},
		"Silent":  {"a success without changes counts as a success", ok, []string{"success"}},
		"Failed": {"an error counts as a retry, whatever is written",
			fails(1, errOrdinary), []string{"retry", "success"}},
	} {
		run(t, map[string]scenario{name: {tc.reason, func(w *harness) {
			w.serveStatus(true)
			w.schema = onlyStatusNumbers
			registry := prometheus.NewRegistry()
			measured, err := metrics.New("op", registry)
			if err != nil {
				w.t.Fatal(err)
			}
			var told []string
			h := onCreate("a", tc.fn, retries(2))
			h.Observe = func(ctx context.Context, c *handlers.Invocation) (context.Context, func(string, error)) {
				return ctx, func(outcome string, _ error) {
					told = append(told[:min(c.Retry, len(told))], outcome)
				}
			}
			p := w.start()
			p.handling.Handlers = append(p.handling.Handlers, adapters.New(p.supervised(h), measured))
			p.settle()
			w.want("observed", tc.want, told)
			w.want("counted", slices.Sorted(slices.Values(tc.want)), countedOutcomes(w.t, registry))
		}}})
	}
}

// countedOutcomes returns the outcomes in kopf_handler_attempts_total, sorted.
func countedOutcomes(t *testing.T, registry *prometheus.Registry) []string {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "kopf_handler_attempts_total" {
			continue
		}
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if label.GetName() == "outcome" {
					found[label.GetValue()] += one.GetCounter().GetValue()
				}
			}
		}
	}
	var all []string
	for _, outcome := range slices.Sorted(maps.Keys(found)) {
		for range int(found[outcome]) {
			all = append(all, outcome)
		}
	}
	return all
}

// TestStatusOfDeletions shows that the finalizer of a deleted object is removed in one pass, whatever the result of
// the preceding write of /status is.
func TestStatusOfDeletions(t *testing.T) {
	const etcd = "etcdserver: request is too large"
	const transport = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"
	cases := map[string]scenario{}
	for name, failure := range map[string]func(write) error{
		"Accepted":             func(write) error { return nil },
		"BadRequest":           func(write) error { return memapi.NewRefusal(400) },
		"Forbidden":            func(write) error { return memapi.NewRefusal(403) },
		"TooLargeForServer":    func(write) error { return memapi.NewRefusal(413) },
		"Invalid":              func(write) error { return memapi.NewRefusal(422, "status.size") },
		"Overloaded":           func(write) error { return memapi.NewRefusal(429) },
		"Broken":               func(write) error { return memapi.NewRefusal(500, "broken") },
		"TooLargeForDatabase":  func(write) error { return serverError(etcd) },
		"TooLargeForTransport": func(write) error { return serverError(transport) },
		"Unreachable":          func(write) error { return memapi.ErrCut },
		"Hanging":              func(one write) error { <-one.done; return memapi.ErrCut },
	} {
		cases[name] = scenario{"the object is gone after one pass, with one call of each handler", func(w *harness) {
			w.serveStatus(true)
			bad := patches("big", "status", "size")
			p := w.start(onDelete("d", all(bad, returns("r"))), onDelete("e", returns("r")))
			p.settle()
			w.before = func(one write) error {
				if one.status {
					return failure(one)
				}
				return nil
			}
			w.delete()
			if _, err := p.pass(); err != nil {
				w.t.Error(err)
			}
			w.want("stored", map[string]any(nil), w.stored())
			if got := len(w.calls()); got != 2 {
				w.t.Errorf("want 2 calls, got %d", got)
			}
		}}
	}
	for text, failure := range map[string]error{
		"Database": serverError(etcd), "Transport": serverError(transport), "Server": memapi.NewRefusal(413),
	} {
		cases["BothTooLarge"+text] = scenario{"the object is gone even if both writes are too large", func(w *harness) {
			w.serveStatus(true)
			p := w.start(onDelete("d", all(patches("big", "status", "size"), patches("big", "spec", "size"))))
			p.settle()
			w.before = func(one write) error {
				if one.status || at(one.patch, "spec", "size") != nil {
					return failure
				}
				return nil
			}
			w.delete()
			_, err := p.pass()
			w.want("error, stored", []any{nil, map[string]any(nil)}, []any{err, w.stored()})
		}}
	}
	cases["TooLargeByItself"] = scenario{"the object is gone even if no handler caused a refusal", func(w *harness) {
		p := w.start(onDelete("d", ok))
		p.settle()
		w.before = func(one write) error {
			if at(one.patch, "metadata", "annotations") != nil {
				return serverError(etcd)
			}
			return nil
		}
		w.delete()
		_, err := p.pass()
		w.want("error, stored", []any{nil, map[string]any(nil)}, []any{err, w.stored()})
	}}
	cases["LeftOfCreation"] = scenario{"the object is gone even if an unwritten status of its creation is refused " +
		"again", func(w *harness) {
		w.serveStatus(true)
		w.before = func(one write) error {
			if one.status {
				return memapi.NewRefusal(500, "broken")
			}
			return nil
		}
		p := w.start(onCreate("a", returns("r")), onDelete("d", returns("r")))
		if _, err := p.pass(); err == nil {
			w.t.Error("the creation was written, want an error")
		}
		w.delete()
		_, err := p.pass()
		w.want("error, stored", []any{nil, map[string]any(nil)}, []any{err, w.stored()})
		w.wantCalls("all", "0s create a", "0s delete d")
	}}
	cases["HeldByOthers"] = scenario{"if others hold the object, the statuses of the other handlers are kept",
		func(w *harness) {
			w.serveStatus(true)
			w.set([]any{"example.org/other"}, "metadata", "finalizers")
			p := w.start(onDelete("d", patches("big", "status", "size")), onDelete("e", returns("r")))
			p.settle()
			w.schema = onlyStatusNumbers
			w.delete()
			_, err := p.pass()
			w.want("error", error(nil), err)
			w.wantAt("after one pass", []any{"example.org/other"}, "metadata", "finalizers")
			w.wantAt("after one pass", "r", "status", "e")
		}}
	cases["WrittenLater"] = scenario{"if others hold the object, a failed status is written later", func(w *harness) {
		w.serveStatus(true)
		w.set([]any{"example.org/other"}, "metadata", "finalizers")
		p := w.start(onDelete("d", returns("r")))
		p.settle()
		broken := true
		w.before = func(one write) error {
			if one.status && broken {
				return memapi.NewRefusal(500, "broken")
			}
			return nil
		}
		w.delete()
		if _, err := p.pass(); err == nil {
			w.t.Error("the pass succeeded, want an error about the unwritten status")
		}
		w.wantAt("after one pass", []any{"example.org/other"}, "metadata", "finalizers")
		broken = false
		p.settle()
		w.wantAt("later", "r", "status", "d")
		w.wantCalls("all", "0s delete d")
	}}
	run(t, cases)
}
