package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// RawChange is the change of an object without a Go type.
type RawChange = kopf.Change[*kopf.Unstructured]

// finalizerSettings is the settings with FinalizerOnCreate.
var finalizerSettings = kopf.Settings{Admission: kopf.AdmissionSettings{FinalizerOnCreate: true}}

// finalizerPath is the path of the webhook that adds finalizers.
const finalizerPath = "/test.example.org/mutate/finalizer"

func patchedTo(list string) string {
	return `[{"op":"add","path":"/metadata/finalizers","value":` + list + `}]`
}

// TestFinalizerOnCreate shows that the webhook adds the finalizer to exactly the objects to which the engine would
// add it. Deviation: D-finalizer-on-create.
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
		"elsewhere": {
			"an object in an unserved namespace gets no finalizer",
			deletes, map[string]any{"namespace": "other"}, free},
		"update": {"an update does not add the finalizer", deletes, map[string]any{"operation": "UPDATE"}, free},
		"subresource": {
			"a request for a subresource does not add the finalizer",
			deletes, map[string]any{"subResource": "status"}, free,
		},
		"held already": {
			"an object that already has the finalizer is not patched",
			deletes, map[string]any{"object": withOurs}, free},
		"filtered out": {"an object that the filter rejects gets no finalizer", func(w kopf.Selection[*Widget]) {
			w.When(func(_ context.Context, w *Widget) bool { return w.Spec.Size > 3 }).OnDelete("gone", succeed)
		}, nil, free},
		"no field": {"an object without the handler's field gets no finalizer", func(w kopf.Selection[*Widget]) {
			w.OnDelete("gone", succeed, kopf.InField("spec.size"))
		}, nil, free},
		"failing filter": {"an object is created without the finalizer if a filter fails", func(
			w kopf.Selection[*Widget],
		) {
			w.OnDelete("gone", succeed, kopf.WhenChange(func(_ context.Context, c *Change) bool {
				c.Patch(func(*Widget) {}) // filters must not change the object
				return true
			}))
		}, nil, free},
		"panicking filter": {"a panicking filter counts as a match, as in the engine", func(
			w kopf.Selection[*Widget],
		) {
			w.When(func(context.Context, *Widget) bool { panic(errors.New("no")) }).OnDelete("gone", succeed)
		}, nil, held},
		"deletion": {"an object with a delete handler gets the finalizer", deletes, nil, held},
		"daemon": {"an object with a daemon gets the finalizer", func(w kopf.Selection[*Widget]) {
			w.Daemon("run", func(context.Context, *kopf.Task[*Widget]) error { return nil })
		}, nil, held},
		"one of two": {"one matching handler is enough to add the finalizer", func(w kopf.Selection[*Widget]) {
			w.WithLabel("a", "b").OnDelete("gone", succeed)
			w.OnDelete("gone-too", succeed, kopf.InField("spec.owner"))
		}, nil, held},
		"dry run": {"a dry run adds the finalizer", deletes, map[string]any{"dryRun": true}, held},
		"without name": {
			"an object with a generated name gets the finalizer",
			deletes, map[string]any{"name": "", "object": unnamed}, held},
		"beside others": {
			"other finalizers of the object are kept", deletes, map[string]any{"object": withOthers}, "others"},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				given := finalizerSettings
				given.Namespaces = []string{"ns*"}
				op := kopf.New("test.example.org", given)
				tc.register(kopf.For(op, &Widget{}))
				on, _, stop := operateServing(t, server, op)
				defer stop()
				time.Sleep(5 * time.Second)
				status, verdict := on.post(t, finalizerPath, request(tc.edits))
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

// createWidget creates a widget as a user does, without the operator's transport.
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
		t.Fatalf("the widget is created: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// TestFinalizerOnCreateIsManaged shows that the entry of the finalizer webhook is written to the cluster, ignores
// failures, has rules only for kinds that the operator can resolve, and is removed at the exit.
func TestFinalizerOnCreateIsManaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAdmissionAPI()
		api.Install(widgetResource)
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
		if d := cmp.Diff([]string{ofThings, ofWidgets}, p.names(t, mutatingResource)); d != "" {
			t.Fatalf("each kind has an entry: -want, +got:\n%s", d)
		}
		if rules := p.entries(t, mutatingResource)[ofThings].Rules; len(rules) > 0 {
			t.Errorf("an ambiguous kind gets no rules: got %v", rules)
		}
		entry := p.entries(t, mutatingResource)[ofWidgets]
		got := fmt.Sprint(*entry.FailurePolicy, *entry.SideEffects, *entry.TimeoutSeconds,
			entry.ObjectSelector.MatchExpressions, entry.Rules[0].Operations, entry.Rules[0].Resources)
		if want := "IgnoreNone3[{a In [b]}][CREATE][widgets]"; strings.ReplaceAll(got, " ", "") !=
			strings.ReplaceAll(want, " ", "") {
			t.Errorf("unexpected entry of the webhook: got %s, want %s", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if got := p.names(t, mutatingResource); len(got) != 0 {
			t.Errorf("the exit removes all entries: got %q", got)
		}
	})
}

// TestFinalizerOnCreateMistakes shows that FinalizerOnCreate is an error with AsKopf, and that a handler must not
// have the id of its webhook.
func TestFinalizerOnCreateMistakes(t *testing.T) {
	asKopf := kopf.AsKopf()
	asKopf.Admission.FinalizerOnCreate = true
	for want, op := range map[string]*kopf.Operator{
		"Admission.FinalizerOnCreate: Kopf has no such webhook": kopf.New("test.example.org", asKopf),
		`Mutate("finalizer"): the id is taken by Mutate`:        kopf.New("test.example.org", finalizerSettings),
	} {
		widgets := kopf.For(op, &Widget{})
		widgets.OnDelete("gone", succeed)
		widgets.Mutate("finalizer", registerAdmission)
		if _, err := kopf.Plan(op, newScheme(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the conflicting setting or id is an error: got %v, want %q", err, want)
		}
	}
}
