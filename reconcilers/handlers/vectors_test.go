package handlers_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

const finalizer = "kopf.zalando.org/KopfFinalizerMarker"

func TestVectorsDetection(t *testing.T) {
	runVectors(t, "detection", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "handlers", "event", "listed", "handled_once", "resource", "diffbase", "progress", "finalizer")
		resource := kopfexamples()
		maps.Copy(resource, input.Mapping("resource"))
		all, err := declare(t, input.List("handlers"), resource)
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

// detect finds the cause, as the engine does: by the essences in which is all that handlers look at.
func detect(t *testing.T, input vectors.Fields, all []declared) (*cause.Cause, error) {
	t.Helper()
	event := vectors.Known(t, input["event"], "type", "object")
	body := event.Mapping("object")
	lens := &cause.Lens{Diffbase: diffbaseOf(t, input["diffbase"]), Progress: progressOf(t, input["progress"])}
	for _, d := range all {
		tracked := d.family == handlers.Changing || d.family == handlers.Watching || d.family == handlers.Spawning
		if tracked && d.field != nil {
			lens.Extra = append(lens.Extra, d.field)
		}
	}
	present, err := lens.New(body)
	if err != nil {
		return nil, err
	}
	former, err := lens.Old(body, lens.Diffbase)
	if err != nil {
		return nil, err
	}
	return cause.Detect(cause.Observation{
		Body: body, Gone: event["type"] == "DELETED", Finalizer: input.Text("finalizer", finalizer), Old: former, New: present,
		Initial: input.Flag("listed") && !input.Flag("handled_once"),
	}), nil
}

func detected(t *testing.T, all []declared, c *cause.Cause) (any, error) {
	t.Helper()
	got := map[string]any{"watching": false, "spawning": nil, "changing": nil}
	var changes []*handlers.Handler
	for _, d := range all {
		switch d.family {
		case handlers.Watching:
			got["watching"] = true
		case handlers.Spawning:
			got["spawning"] = map[string]any{"reset": len(c.Diff) > 0}
		case handlers.Changing:
			changes = append(changes, d.handler)
		}
	}
	if len(changes) == 0 {
		return got, nil
	}
	interest, err := handlers.InterestIn(t.Context(), changes, c)
	if err != nil {
		return nil, err
	}
	selected, err := handlers.Select(t.Context(), changes, c)
	if err != nil {
		return nil, err
	}
	changing := map[string]any{
		"reason": string(c.Reason), "initial": c.Initial, "old": essence(c.Old), "new": essence(c.New), "diff": items(c.Diff),
		"prematch": interest.Changing, "handlers": nil,
	}
	if c.Reason.Handled() {
		changing["handlers"] = ids(selected)
	} else if len(selected) > 0 {
		return nil, fmt.Errorf("handlers are selected for %s: %v", c.Reason, ids(selected))
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
		path := make([]any, 0, len(item.Path))
		for _, key := range item.Path {
			path = append(path, key)
		}
		list = append(list, []any{string(item.Op), path, item.Old, item.New})
	}
	return list
}

func ids(selected []*handlers.Handler) []any {
	list := make([]any, 0, len(selected))
	for _, h := range selected {
		list = append(list, h.ID)
	}
	return list
}
