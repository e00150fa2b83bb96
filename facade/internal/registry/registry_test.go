package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const operator = "test.example.org"

func newRegistry(lines *[]string) *registry.HandlerRegistry {
	return &registry.HandlerRegistry{Location: "main.go:1", Log: func() logr.Logger {
		return funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{})
	}}
}

// selected returns a selection of the resource.
func selected(r *registry.HandlerRegistry, resource string) *registry.SelectedKind {
	selector, err := discovery.ParseSpelling(resource)
	return &registry.SelectedKind{
		Registry: r, Location: "main.go:2",
		Find:       func(*runtime.Scheme) (discovery.Selector, error) { return selector, err },
		CheckField: func(diff.Path) error { return nil },
	}
}

// newCreateEntry returns a create handler with its own function.
func newCreateEntry(of *registry.SelectedKind, id string, formerIDs ...string) registry.HandlerEntry {
	return registry.HandlerEntry{Kind: of, Verb: "OnCreate", Handler: &handlers.Handler{
		ID: id, Family: handlers.Changing, Reason: cause.Create, Location: "main.go:3", FunctionKey: new(int),
		FormerIDs: formerIDs,
	}}
}

func TestPlan(t *testing.T) {
	missing := errors.New("no such type")
	cases := map[string]struct {
		reason   string
		register func(r *registry.HandlerRegistry)
		want     string // empty without a mistake
	}{
		"OneHandler": {
			"a single handler is valid",
			func(r *registry.HandlerRegistry) { r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "a")) }, "",
		},
		"OneID": {
			"the same id for two functions of a kind is an error",
			func(r *registry.HandlerRegistry) {
				r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "a"))
				r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "a"))
			}, `main.go:3: OnCreate("a"): the id is taken by OnCreate at main.go:3 for another function`,
		},
		"OneIDForTwoKinds": {
			"the same id for two kinds is valid",
			func(r *registry.HandlerRegistry) {
				r.RegisterHandler(newCreateEntry(selected(r, "widgets.example.org"), "a"))
				r.RegisterHandler(newCreateEntry(selected(r, "gadgets.example.org"), "a"))
			}, "",
		},
		"FormerIDInUse": {
			"a former id that another handler uses is an error",
			func(r *registry.HandlerRegistry) {
				r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "a"))
				r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "b", "a"))
			}, `OnCreate("b"): the former id "a" belongs to OnCreate("a") at main.go:3`,
		},
		"UnknownType": {
			"an unknown type is one error for all handlers of the selection",
			func(r *registry.HandlerRegistry) {
				of := selected(r, "widgets")
				of.Find = func(*runtime.Scheme) (discovery.Selector, error) { return discovery.Selector{}, missing }
				r.RegisterHandler(newCreateEntry(of, "a"))
				r.RegisterHandler(newCreateEntry(of, "b"))
			}, "main.go:2: no such type",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(nil)
			tc.register(r)
			_, wrong := r.BuildPlan(runtime.NewScheme(), registry.PlanRules{
				ProgressStorage: progress.Annotations{Prefix: operator},
				StoragePointers: func() ([]string, error) { return nil, nil },
			})
			switch err := wrong.JoinedError(operator); {
			case tc.want == "" && err != nil:
				t.Errorf("\n%s\nPlan(): %v", tc.reason, err)
			case tc.want != "" && (len(wrong) != 1 || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("\n%s\nPlan(): %v, want one mistake: %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestRegisterTooLate(t *testing.T) {
	var lines []string
	r := newRegistry(&lines)
	r.Stage = registry.SetUp
	r.RegisterHandler(newCreateEntry(selected(r, "widgets"), "a"))
	if got := r.Mistakes.JoinedError(operator); len(r.Entries) > 0 || got == nil || len(lines) > 0 {
		t.Errorf("Register() after the set-up: %d entries, error %v, log %q; want the error alone",
			len(r.Entries), got, lines)
	}
	r.Stage = registry.Running
	r.RegisterActivity("OnProbe", &handlers.Handler{ID: "b", Location: "main.go:4"}, nil)
	if len(lines) != 1 || !strings.Contains(lines[0], `"location"="main.go:4"`) {
		t.Errorf("RegisterActivity() of a running operator: log %q, want one line", lines)
	}
}

func TestErrorsWithoutOperator(t *testing.T) {
	var none *registry.SelectedKind
	none.AddError(errors.New("the selection is empty"))
	(&registry.SelectedKind{Registry: &registry.HandlerRegistry{}}).AddError(errors.New("the operator is empty"))
	taken := registry.TakeOwnerless()
	if len(taken) != 2 || !strings.Contains(taken[0].Error(), "registry_test.go:") {
		t.Errorf("TakeOwnerless(): %v, want both errors with their places", taken)
	}
	if again := registry.TakeOwnerless(); len(again) > 0 {
		t.Errorf("second TakeOwnerless(): %v, want no errors", again)
	}
}

// TestShareFormerIDs shows that only handlers that store something under their id get the former ids of all handlers
// with this id. All handlers of the kind can read the results by them.
func TestShareFormerIDs(t *testing.T) {
	selector, err := discovery.ParseSpelling("widgets")
	if err != nil {
		t.Fatal(err)
	}
	entry := func(family handlers.Family, formerIDs ...string) registry.ResolvedEntry {
		h := &handlers.Handler{ID: "a", Family: family, FormerIDs: formerIDs}
		return registry.ResolvedEntry{Selector: selector, HandlerEntry: registry.HandlerEntry{Handler: h}}
	}
	all := []registry.ResolvedEntry{
		entry(handlers.Changing, "old"), entry(handlers.Changing), entry(handlers.Watching),
	}
	registry.ShareFormerIDs(all)
	for i, want := range [][]string{{"old"}, {"old"}, nil} {
		if got := all[i].Handler; !slices.Equal(got.FormerIDs, want) || len(got.KindFormerIDs["a"]) != 1 {
			t.Errorf("handler %d: former ids %q, want %q; of the kind %v", i, got.FormerIDs, want, got.KindFormerIDs)
		}
	}
}
