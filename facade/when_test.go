package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// TestSubFilters shows that sub-handlers are filtered, and that a filtered one does not block its parent.
func TestSubFilters(t *testing.T) {
	labelled := func(w *Widget) { w.Labels = map[string]string{"tier": "prod"} }
	large := kopf.WhenChange(func(_ context.Context, c *Change) bool { return c.Object.Spec.Size > 3 })
	inProd := kopf.WhenChange(func(_ context.Context, c *Change) bool { return c.Object.Labels["tier"] == "prod" })
	for name, tc := range map[string]struct {
		reason     string
		object     func(w *Widget)
		opts       []kopf.Option
		wantCalled bool
	}{
		"Matches":   {"the function returns true", func(w *Widget) { w.Spec.Size = 4 }, []kopf.Option{large}, true},
		"OtherSize": {"the function returns false", func(w *Widget) { w.Spec.Size = 3 }, []kopf.Option{large}, false},
		"Labels":    {"the function can read labels", labelled, []kopf.Option{inProd}, true},
		"Joined": {
			"a single option overrides a joined one of the same name", labelled,
			[]kopf.Option{kopf.JoinOptions(large), inProd}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Widget{}
			tc.object(w)
			called := false
			declare := func(_ context.Context, c *Change) error {
				c.Sub(
					"s",
					func(context.Context, *Change) error { called = true; return nil },
					kopf.JoinOptions(tc.opts...),
				)
				return nil
			}
			got := facadetest.NewChange(w, facadetest.Reason(kopf.ReasonCreate)).Call(t.Context(), declare)
			if called != tc.wantCalled || !got.Final || got.Err != nil {
				t.Errorf("%s: called %t, want %t; a sub-handler that does not match must not block its handler: %+v",
					tc.reason, called, tc.wantCalled, got)
			}
		})
	}
}

// TestSubThatDoesNotMatchIsKept shows that a sub-handler that does not match for a while continues with its record. A
// sub-handler that is not declared for a while would begin again.
func TestSubThatDoesNotMatchIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []string
		began := time.Now()
		sub := func(fails int, after time.Duration) kopf.ChangeFunc[*kopf.Unstructured] {
			return func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, time.Since(began).Truncate(time.Second).String()+" "+c.ID+" "+
					string(rune('0'+c.Retry)))
				if c.Retry < fails {
					return kopf.Temporary(errors.New("not yet"), after)
				}
				return nil
			}
		}
		op := kopf.New("subs.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		kopf.ForResource(op, "configmaps").OnCreate("p", func(
			_ context.Context, c *kopf.Change[*kopf.Unstructured],
		) error {
			c.Sub("some", sub(2, time.Minute), kopf.WhenChange(
				func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) bool {
					return c.Object.GetLabels()["on"] != ""
				},
			))
			c.Sub("all", sub(2, 5*time.Minute))
			return nil
		})
		server := memapi.New()
		kind := memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
		label := func(labels map[string]any) {
			server.Edit(kind, "ns", "w1", func(body map[string]any) {
				body["metadata"].(map[string]any)["labels"] = labels
			})
		}
		server.Put(kind, map[string]any{"metadata": map[string]any{
			"namespace": "ns", "name": "w1", "labels": map[string]any{"on": "1"},
		}})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(30 * time.Second)
		label(nil)
		time.Sleep(6 * time.Minute) // both were due once
		label(map[string]any{"on": "1"})
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if d := cmp.Diff([]string{
			"0s p/some 0", "0s p/all 0", "5m0s p/all 1", "10m0s p/some 1", "10m0s p/all 2", "11m0s p/some 2",
		}, calls); d != "" {
			t.Errorf("the sub-handler must not be called at 5m0s, and must continue at 10m0s: -want, +got:\n%s", d)
		}
	})
}

// TestWhenEvent shows that WhenEvent filters watch events by their type and object.
func TestWhenEvent(t *testing.T) {
	gone := kopf.WhenEvent(func(_ context.Context, e *kopf.WatchEvent[*Widget]) bool {
		return e.Type == kopf.WatchEventDeleted && e.Object.Spec.Owner == "me" && e.ID == "fn"
	})
	for name, tc := range map[string]struct {
		reason     string
		typ        kopf.WatchEventType
		owner      string
		wantCalled bool
	}{
		"Deleted":  {"an event with the right type and object calls the handler", kopf.WatchEventDeleted, "me", true},
		"Modified": {"an event of another type is filtered out", kopf.WatchEventModified, "me", false},
		"Other":    {"an event of another object is filtered out", kopf.WatchEventDeleted, "you", false},
	} {
		got := facadetest.NewWatchEvent(tc.typ, &Widget{Spec: WidgetSpec{Owner: tc.owner}}, facadetest.ID("fn")).
			Call(t.Context(), func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil }, gone)
		if got.Called != tc.wantCalled || got.Err != nil {
			t.Errorf("%s: %s: got %+v", name, tc.reason, got)
		}
	}
}

// TestWhenRequest shows that WhenRequest filters requests, and is called once for each of them.
func TestWhenRequest(t *testing.T) {
	asked := 0
	opt := kopf.WhenRequest(func(_ context.Context, a *kopf.Admission[*Widget]) bool {
		asked++
		return a.Operation == "UPDATE" && !a.DryRun && a.UserInfo.Username != "admin" &&
			a.Object.Spec.Size > a.Old.Spec.Size
	})
	deny := func(context.Context, *kopf.Admission[*Widget]) error { return kopf.Deny(http.StatusConflict, "no") }
	old, larger := facadetest.Old(&Widget{Spec: WidgetSpec{Size: 1}}), &Widget{Spec: WidgetSpec{Size: 2}}
	by := func(name string, dry bool) facadetest.Option {
		return facadetest.Request(admissionv1.AdmissionRequest{
			DryRun: ptr.To(dry), UserInfo: authenticationv1.UserInfo{Username: name}, Operation: "UPDATE",
		})
	}
	for name, tc := range map[string]struct {
		reason     string
		options    []facadetest.Option
		wantCalled bool
	}{
		"Matching": {"a request that matches calls the handler", []facadetest.Option{old, by("ann", false)}, true},
		"Creation": {"a request with another operation is filtered out", nil, false},
		"User":     {"a request of another user is filtered out", []facadetest.Option{old, by("admin", false)}, false},
		"DryRun":   {"a dry run is filtered out", []facadetest.Option{old, by("ann", true)}, false},
		"Smaller": {
			"a request that makes the object smaller is filtered out",
			[]facadetest.Option{facadetest.Old(larger), by("ann", false)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			for verb, got := range map[string]facadetest.Verdict[*Widget]{
				"Validate": facadetest.NewAdmission(larger, tc.options...).Validate(t.Context(), deny, opt),
				"Mutate":   facadetest.NewAdmission(larger, tc.options...).Mutate(t.Context(), deny, opt),
			} {
				if got.Called != tc.wantCalled || got.Allowed == tc.wantCalled {
					t.Errorf("%s: %s: got %+v", verb, tc.reason, got)
				}
			}
			if asked != 2 {
				t.Errorf("the function was called %d times for two requests, want 2", asked)
			}
		})
	}
}

// TestWhenRequestOnlyReads shows that a filter of requests that does more than read is an error of the request.
func TestWhenRequestOnlyReads(t *testing.T) {
	warns := kopf.WhenRequest(func(_ context.Context, a *kopf.Admission[*Widget]) bool { a.Warning("hm"); return true })
	patches := kopf.WhenRequest(func(_ context.Context, a *kopf.Admission[*Widget]) bool {
		a.Patch(func(w *Widget) { w.Spec.Size = 7 })
		return true
	})
	panics := kopf.WhenRequest(func(context.Context, *kopf.Admission[*Widget]) bool { panic("boo") })
	for name, opt := range map[string]kopf.Option{"warning": warns, "patch": patches, "panic": panics} {
		op := kopf.New("test.example.org")
		called := false
		kopf.For(op, &Widget{}).Mutate("m", func(context.Context, *kopf.Admission[*Widget]) error {
			called = true
			return nil
		}, kopf.JoinOptions(opt))
		text, err := json.Marshal(map[string]any{"request": request(nil)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = reviewerOf(t, op).Review(t.Context(), review.EndpointRequest{Body: text})
		if called || err == nil || !strings.Contains(err.Error(), `filter of handler "m"`) {
			t.Errorf("%s: called %t, error %v", name, called, err)
		}
	}
}

// TestMistakesOfWhen shows that wrong functions of filters are errors of the set-up.
func TestMistakesOfWhen(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	ofOthers := func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) bool { return true }
	widgets.OnEvent(
		"e",
		func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil },
		kopf.WhenEvent(ofOthers),
	)
	widgets.Validate("v", func(context.Context, *kopf.Admission[*Widget]) error { return nil },
		kopf.WhenRequest[*Widget](nil))
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("wrong filters must be errors")
	}
	for _, want := range []string{
		`OnEvent("e"): WhenEvent: the function is a func(context.Context, *kopf.WatchEvent[`,
		"its objects are of another Go type",
		`Validate("v"): WhenRequest: the function is nil`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in:\n%v", want, err)
		}
	}
	for want, opt := range map[string]kopf.Option{
		"WhenChange: the function is nil": kopf.WhenChange[*Widget](nil),
		"of another Go type": kopf.WhenChange(func(context.Context, *kopf.Change[*kopf.Unstructured]) bool {
			return true
		}),
	} {
		wantFailed(t, parent(t, &subs{}, func(_ context.Context, c *Change) error {
			c.Sub("s", succeed, kopf.JoinOptions(opt))
			return nil
		}), want)
	}
}
