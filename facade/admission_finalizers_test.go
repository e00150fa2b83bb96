package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// RawChange is one of an object without a Go type.
type RawChange = kopf.Change[*kopf.Unstructured]

// finalizing are the settings with finalizers on creation.
var finalizing = kopf.Settings{Admission: kopf.AdmissionSettings{FinalizerOnCreate: true}}

// settingFinalizers is where objects get theirs.
const settingFinalizers = "/test.example.org/mutate/finalizer"

func patchedTo(list string) string {
	return `[{"op":"add","path":"/metadata/finalizers","value":` + list + `}]`
}

// The finalizer is set where the engine would set it, and nowhere else. The mark is D-finalizer-on-create.
func TestFinalizerOnCreate(t *testing.T) {
	const held, free = `["test.example.org/finalizer"]`, ""
	deletes := func(w kopf.Selection[*Widget]) { w.OnDelete("gone", succeed) }
	unnamed := body(nil)
	unnamed["metadata"] = map[string]any{"generateName": "w-", "namespace": "ns"}
	withOthers := body(nil)
	withOthers["metadata"].(map[string]any)["finalizers"] = []any{"a/b"}
	withOurs := body(nil)
	withOurs["metadata"].(map[string]any)["finalizers"] = []any{"test.example.org/finalizer"}
	for name, tc := range map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		edits    map[string]any
		want     string
	}{
		"elsewhere": {"nobody would ever remove it there", deletes, map[string]any{"namespace": "other"}, free},
		"update":    {"only what is created is spared a write", deletes, map[string]any{"operation": "UPDATE"}, free},
		"subresource": {
			"that is none of the objects as a whole", deletes, map[string]any{"subResource": "status"}, free,
		},
		"held already": {"the object came with it", deletes, map[string]any{"object": withOurs}, free},
		"filtered out": {"no handler needs it", func(w kopf.Selection[*Widget]) {
			w.When(func(_ context.Context, w *Widget) bool { return w.Spec.Size > 3 }).OnDelete("gone", succeed)
		}, nil, free},
		"no field": {"a field is a filter, too", func(w kopf.Selection[*Widget]) {
			w.OnDelete("gone", succeed, kopf.InField("spec.size"))
		}, nil, free},
		"failing filter": {"the object waits for its handlers then, but it can be created", func(
			w kopf.Selection[*Widget],
		) {
			w.OnDelete("gone", succeed, kopf.WhenChange(func(_ context.Context, c *Change) bool {
				c.Patch(func(*Widget) {}) // filters may only read
				return true
			}))
		}, nil, free},
		"panicking filter": {"its handler fails until the filter answers, as for the engine", func(
			w kopf.Selection[*Widget],
		) {
			w.When(func(context.Context, *Widget) bool { panic(errors.New("no")) }).OnDelete("gone", succeed)
		}, nil, held},
		"deletion": {"the handler needs it", deletes, nil, held},
		"daemon": {"it has to be stopped before the object goes", func(w kopf.Selection[*Widget]) {
			w.Daemon("run", func(context.Context, *kopf.Task[*Widget]) error { return nil })
		}, nil, held},
		"one of two": {"any handler is enough", func(w kopf.Selection[*Widget]) {
			w.WithLabel("a", "b").OnDelete("gone", succeed)
			w.OnDelete("gone-too", succeed, kopf.InField("spec.owner"))
		}, nil, held},
		"dry run":       {"there is nothing else to it", deletes, map[string]any{"dryRun": true}, held},
		"without name":  {"the name comes later", deletes, map[string]any{"name": "", "object": unnamed}, held},
		"beside others": {"theirs stay", deletes, map[string]any{"object": withOthers}, "others"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.Install(served)
				given := finalizing
				given.Namespaces = []string{"ns*"}
				op := kopf.New("test.example.org", given)
				tc.register(kopf.For(op, &Widget{}))
				on, _, stop := operateServing(t, server, op)
				defer stop()
				time.Sleep(5 * time.Second)
				status, verdict := on.post(t, settingFinalizers, request(tc.edits))
				want := ""
				switch tc.want {
				case held:
					want = patchedTo(held)
				case "others":
					want = strings.Replace(patchedTo(`["a/b","test.example.org/finalizer"]`), "add", "replace", 1)
				}
				if status != http.StatusOK || !verdict.Allowed || string(verdict.Patch) != want {
					t.Errorf("%s: got %d, %+v with %s, want %s", tc.reason, status, verdict, verdict.Patch, want)
				}
			})
		})
	}
}

// webhooks are those of the API server: they ask the operator about what is created.
func webhooks(t *testing.T, on *socketless) memapi.Admission {
	return memapi.Admission{Mutate: func(of memapi.Resource, object map[string]any) {
		metadata, _ := object["metadata"].(map[string]any)
		if of.Plural != served.Plural || metadata["resourceVersion"] != nil {
			return
		}
		status, verdict := on.post(t, settingFinalizers, request(map[string]any{"object": object}))
		if status != http.StatusOK {
			return // the entry says to go on
		}
		for key, value := range mutated(t, object, verdict.Patch)["metadata"].(map[string]any) {
			if key == "finalizers" {
				metadata[key] = value
			}
		}
	}}
}

// spent notes what is written to widgets.
type spent struct {
	next http.RoundTripper
	mu   sync.Mutex
	all  []string
}

func (w *spent) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/widgets") && r.Method != http.MethodGet {
		w.mu.Lock()
		w.all = append(w.all, r.Method)
		w.mu.Unlock()
	}
	return w.next.RoundTrip(r)
}

// list is what was written so far.
func (w *spent) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// A creation costs one write less, and the deletion is as ever.
func TestFinalizerOnCreateSparesAWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		settings         kopf.Settings
		creation, afters int
	}{
		"without": {kopf.Settings{}, 2, 1},
		"with":    {finalizing, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.Install(served)
				counted := &spent{next: server}
				op := kopf.New("test.example.org", tc.settings)
				widgets := kopf.For(op, &Widget{})
				var mu sync.Mutex
				var called []string
				note := func(_ context.Context, c *Change) error {
					mu.Lock()
					defer mu.Unlock()
					called = append(called, string(c.Reason))
					return nil
				}
				widgets.OnCreate("made", note)
				widgets.OnDelete("gone", note)
				on, _, stop := operateServing(t, counted, op)
				defer stop()
				server.Admit(webhooks(t, on))
				time.Sleep(5 * time.Second)
				createWidget(t, server)
				time.Sleep(time.Minute)
				if got := counted.list(); len(got) != tc.creation {
					t.Errorf("creation: got %q, want %d writes", got, tc.creation)
				}
				server.Delete(served, "ns", "w1")
				time.Sleep(time.Minute)
				left := server.Object(served, "ns", "w1")
				if got := counted.list(); len(got) != tc.creation+tc.afters || left != nil {
					t.Errorf("deletion: got %q in all, %v", got, left)
				}
				mu.Lock()
				defer mu.Unlock()
				if d := cmp.Diff([]string{"create", "delete"}, called); d != "" {
					t.Errorf("-want, +got:\n%s", d)
				}
			})
		})
	}
}

// createWidget creates one as users do, past what the operator sends.
func createWidget(t *testing.T, server *memapi.Server) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "w1"}, "spec": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://memory/apis/example.org/v1/namespaces/ns/widgets", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := server.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("creating: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// The cluster is told of it, without anybody having to wait for an operator that is gone; and only of kinds that the
// operator can handle.
func TestFinalizerOnCreateIsManaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := cluster()
		api.Install(served)
		for _, group := range []string{"one.example.org", "two.example.org"} {
			api.Install(memapi.Resource{Group: group, Version: "v1", Kind: "Thing", Plural: "things"})
		}
		op := kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
			Managed: "shared.example.org", Service: "team-a/webhook", FinalizerOnCreate: true,
		}})
		kopf.For(op, &Widget{}).MatchingLabels("a=b").OnDelete("gone", succeed)
		kopf.ForResource(op, "things").OnDelete("gone", func(context.Context, *RawChange) error { return nil })
		p := startProgram(t, api, op)
		time.Sleep(5 * time.Second)
		const ofThings = "things.finalizer.test.example.org"
		const ofWidgets = "widget.v1.example.org.finalizer.test.example.org"
		if d := cmp.Diff([]string{ofThings, ofWidgets}, p.names(t, mutating)); d != "" {
			t.Fatalf("-want, +got:\n%s", d)
		}
		if rules := p.entries(t, mutating)[ofThings].Rules; len(rules) > 0 {
			t.Errorf("nobody handles what is ambiguous: got %v", rules)
		}
		entry := p.entries(t, mutating)[ofWidgets]
		got := fmt.Sprint(*entry.FailurePolicy, *entry.SideEffects, *entry.TimeoutSeconds,
			entry.ObjectSelector.MatchExpressions, entry.Rules[0].Operations, entry.Rules[0].Resources)
		if want := "IgnoreNone3[{a In [b]}][CREATE][widgets]"; strings.ReplaceAll(got, " ", "") !=
			strings.ReplaceAll(want, " ", "") {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if got := p.names(t, mutating); len(got) != 0 {
			t.Errorf("nothing stays: got %q", got)
		}
	})
}

// Without the setting, or without handlers that need it, nothing is served.
func TestFinalizerOnCreateIsAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		settings kopf.Settings
		register func(w kopf.Selection[*Widget])
	}{
		"off": {kopf.Settings{}, func(w kopf.Selection[*Widget]) { w.OnDelete("gone", succeed) }},
		"no handler": {finalizing, func(w kopf.Selection[*Widget]) {
			w.OnCreate("made", succeed)
			w.OnDelete("gone", succeed, kopf.Optional())
			poll := func(context.Context, *kopf.Task[*Widget]) error { return nil }
			w.Timer("poll", time.Minute, poll, kopf.Optional())
		}},
	} {
		op := kopf.New("test.example.org", tc.settings)
		tc.register(kopf.For(op, &Widget{}))
		plan, err := kopf.Plan(op, newScheme(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range plan {
			if slices.Contains(one.Handler.Operations, string(admissionregistrationv1.Create)) {
				t.Errorf("%s: got %+v", name, one.Handler)
			}
		}
	}
}

func TestFinalizerOnCreateMistakes(t *testing.T) {
	asKopf := kopf.AsKopf()
	asKopf.Admission.FinalizerOnCreate = true
	for want, op := range map[string]*kopf.Operator{
		"Admission.FinalizerOnCreate: Kopf has no such webhook": kopf.New("test.example.org", asKopf),
		`Mutate("finalizer"): the id is taken by Mutate`:        kopf.New("test.example.org", finalizing),
	} {
		widgets := kopf.For(op, &Widget{})
		widgets.OnDelete("gone", succeed)
		widgets.Mutate("finalizer", admit)
		if _, err := kopf.Plan(op, newScheme(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
