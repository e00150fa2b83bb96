package adapters_test

import (
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/diffbasetest"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/progresstest"
)

const finalizer = "kopf.zalando.org/KopfFinalizerMarker"

func TestVectorsDetection(t *testing.T) {
	runVectors(t, "detection", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(
			t, input, "handlers", "event", "listed", "handled_once", "resource", "diffbase", "progress", "finalizer",
		)
		all, err := declared.Handlers(t, input.List("handlers"), declared.Resource(t, input["resource"]))
		if err != nil {
			return nil, err
		}
		c, err := detect(t, input, all)
		if err != nil {
			return nil, err
		}
		return detected(t, all, c)
	})
}

// detect returns the cause as the engine computes it, from essences with all fields that handlers use.
func detect(t *testing.T, input vectors.Fields, all []declared.Declared) (*cause.Cause, error) {
	t.Helper()
	event := vectors.Known(t, input["event"], "type", "object")
	body := event.Mapping("object")
	diffbase, err := diffbasetest.Storage(t, input["diffbase"])
	if err != nil {
		return nil, err
	}
	progress, err := progresstest.Storage(t, input["progress"])
	if err != nil {
		return nil, err
	}
	lens := &cause.Lens{Diffbase: diffbase, Progress: progress}
	for _, d := range all {
		family := d.Handler.Family
		tracked := family == handlers.Changing || family == handlers.Watching || family == handlers.Background
		if tracked && d.SelectsServed && d.Handler.Field != nil {
			lens.ExtraPaths = append(lens.ExtraPaths, d.Handler.Field)
		}
	}
	present, err := lens.New(body)
	if err != nil {
		return nil, err
	}
	former, err := lens.ComparableEssence(lens.Diffbase.Fetch(body))
	if err != nil {
		return nil, err
	}
	return cause.Detect(cause.Observation{
		Body: body, Gone: event["type"] == "DELETED", Finalizer: input.Text(
			"finalizer", finalizer,
		), Old: former, New: present,
		Initial: input.Flag("listed") && !input.Flag("handled_once"),
	}), nil
}

func detected(t *testing.T, all []declared.Declared, c *cause.Cause) (any, error) {
	t.Helper()
	got := map[string]any{"watching": false, "spawning": nil, "changing": nil}
	var changes []*handlers.Handler
	for _, d := range all {
		switch {
		case !d.SelectsServed:
		case d.Handler.Family == handlers.Watching:
			got["watching"] = true
		case d.Handler.Family == handlers.Background:
			got["spawning"] = map[string]any{"reset": len(c.Diff) > 0}
		case d.Handler.Family == handlers.Changing:
			changes = append(changes, d.Handler)
		}
	}
	if len(changes) == 0 {
		return got, nil
	}
	interest, err := adapters.InterestIn(t.Context(), newChains(changes...), c, nil)
	if err != nil {
		return nil, err
	}
	changing := map[string]any{
		"reason": string(c.Reason), "initial": c.Initial, "old": essence(c.Old), "new": essence(c.New),
		"diff":     items(c.Diff),
		"prematch": interest.HasChangeHandler, "handlers": nil,
	}
	// The other reasons are informational: no handlers are selected for them.
	if slices.Contains([]cause.Reason{cause.Create, cause.Update, cause.Delete, cause.Resume}, c.Reason) {
		selected, err := adapters.Select(t.Context(), newChains(changes...), c, nil)
		if err != nil {
			return nil, err
		}
		changing["handlers"] = ids(selected)
	}
	got["changing"] = changing
	return got, nil
}

func essence(e map[string]any) any {
	if e == nil {
		return nil
	}
	return e
}

func items(changes diff.Diff) []any {
	list := make([]any, 0, len(changes))
	for _, item := range changes {
		list = append(list, []any{string(item.Op), keysOf(item.Path), item.Old, item.New})
	}
	return list
}

func keysOf(path diff.Path) []any {
	keys := []any{}
	for _, key := range path {
		keys = append(keys, key)
	}
	return keys
}

func ids(selected []*adapters.HandlerChain) []any {
	list := make([]any, 0, len(selected))
	for _, h := range selected {
		list = append(list, h.Description.ID)
	}
	return list
}
