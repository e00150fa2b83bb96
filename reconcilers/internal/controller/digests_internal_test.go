package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestDigestPaths shows that a path redacted by one handler is redacted for the whole kind, and that a Secret
// is redacted completely unless the settings say otherwise.
func TestDigestPaths(t *testing.T) {
	data, token := diff.Path{"data"}, diff.Path{"spec", "token"}
	own := []*adapters.HandlerChain{
		adapters.New(&handlers.Handler{ID: "a", RedactedPaths: []diff.Path{token, data}}, nil),
		adapters.New(&handlers.Handler{ID: "b", RedactedPaths: []diff.Path{token}}, nil),
	}
	secret := discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
	for name, c := range map[string]struct {
		secrets bool
		r       discovery.Resource
		want    []diff.Path
	}{
		"OtherKind": {true, widgets, []diff.Path{token, data}}, "Secrets": {true, secret, []diff.Path{nil}},
		"SecretsAsTheyAre": {false, secret, []diff.Path{token, data}},
	} {
		if d := cmp.Diff(c.want, sharedRedaction(kind.Digests{Secrets: c.secrets}, c.r, own).Paths); d != "" {
			t.Errorf("%s: -want, +got:\n%s", name, d)
		}
	}
}

// failingDiffbase is a storage that cannot build an essence.
type failingDiffbase struct{ diffbase.Annotations }

func (failingDiffbase) Build(map[string]any, []diff.Path) (diffbase.Essence, error) {
	return nil, errors.New("spoilt")
}

// TestHoldingNewObjects shows that a new object needs the finalizer if a handler of deletions exists, and that errors
// of the storage are returned.
func TestHoldingNewObjects(t *testing.T) {
	deleting := []*adapters.HandlerChain{adapters.New(&handlers.Handler{
		ID: "d", Reason: cause.Delete, Call: func(context.Context, *handlers.Invocation) error { return nil },
	}, nil)}
	s := kind.Settings{
		Finalizer: prefix + "/finalizer", Diffbase: diffbase.Annotations{Prefix: prefix},
		Progress: progress.Annotations{Prefix: prefix},
	}
	body := map[string]any{"metadata": map[string]any{"name": "a"}}
	for name, c := range map[string]struct {
		handlers []*adapters.HandlerChain
		want     bool
	}{"ForADeletion": {deleting, true}, "ForNobody": {nil, false}} {
		if holds, err := HoldsNew(t.Context(), s, widgets, c.handlers, body); err != nil || holds != c.want {
			t.Errorf("%s: held: %v, %v", name, holds, err)
		}
	}
	s.Diffbase = failingDiffbase{}
	if _, err := HoldsNew(t.Context(), s, widgets, deleting, body); err == nil {
		t.Error("an error of the storage is not returned")
	}
}

// TestConditionsAreNoChanges shows that conditions of reporting handlers are hidden from the essence, so writing them
// is not a change.
func TestConditionsAreNoChanges(t *testing.T) {
	own := reportingHandlers()
	for name, c := range map[string]struct {
		handlers []*adapters.HandlerChain
		hidden   bool
	}{"Reporting": {own, true}, "NotReporting": {nil, false}} {
		if hides := lensOf(kind.Settings{}, widgets, c.handlers).Hide != nil; hides != c.hidden {
			t.Errorf("%s: conditions are hidden: %v", name, hides)
		}
	}
}
