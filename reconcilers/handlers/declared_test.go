package handlers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// options are those that any decorator of Kopf takes. What is not about selection is none of our business here.
var options = []string{
	"on", "id", "fn", "resource", "param", "labels", "annotations", "field", "value", "old", "new", "when", "deleted",
	"optional", "errors", "timeout", "retries", "backoff", "behave", "interval", "sharp", "idle", "initial_delay",
	"cancellation_backoff", "cancellation_timeout", "cancellation_polling", "operation", "operations", "subresource",
	"persistent", "side_effects", "ignore_failures",
}

var families = map[string]handlers.Family{
	"create": handlers.Changing, "update": handlers.Changing, "delete": handlers.Changing, "resume": handlers.Changing,
	"field": handlers.Changing, "event": handlers.Watching, "timer": handlers.Spawning, "daemon": handlers.Spawning,
	"index": handlers.Indexing, "validate": handlers.Admitting, "mutate": handlers.Admitting,
}

// activities are handlers of no object at all.
var activities = map[string]bool{"startup": true, "cleanup": true, "login": true, "probe": true}

// declared is one declaration.
type declared struct {
	family  handlers.Family
	field   diff.Path
	handler *handlers.Handler
}

// declare reads the declarations for the resource; those for others are left out.
func declare(t *testing.T, list []any, resource vectors.Fields) ([]declared, error) {
	t.Helper()
	var all []declared
	for _, item := range list {
		d := vectors.Known(t, item, options...)
		on := d.Text("on", "")
		family, ok := families[on]
		if activities[on] {
			continue
		} else if !ok {
			t.Fatalf("the harness does not know the decorator %q", on)
		}
		var selector any = []any{"kopf.dev", "v1", "kopfexamples"}
		if d["resource"] != nil {
			selector = d["resource"]
		}
		mine, err := selects(selector, resource)
		if err != nil {
			return nil, err
		}
		one, err := declareOne(t, on, family, d)
		if err != nil {
			return nil, err
		}
		if mine {
			all = append(all, one)
		}
	}
	return all, nil
}

func declareOne(t *testing.T, on string, family handlers.Family, d vectors.Fields) (declared, error) {
	t.Helper()
	switch d["field"].(type) {
	case nil, string, []any:
	default:
		return declared{}, fmt.Errorf("no specification of a field: %v", d["field"])
	}
	h := &handlers.Handler{
		ID: idOf(t, on, d), Family: family, Function: d.Text("fn", d.Text("id", "fn")), EvenIfDeleted: d.Flag("deleted"),
		Optional: d.Flag("optional"), Initial: on == "resume", Mutating: on == "mutate", Field: pathOf(t, d["field"]),
	}
	if on == "create" || on == "update" || on == "delete" {
		h.Reason = cause.Reason(on)
	}
	for _, item := range d.List("operations") {
		operation, _ := item.(string)
		h.Operations = append(h.Operations, operation)
	}
	if list, given := d["operations"].([]any); given && len(list) == 0 {
		return declared{}, errors.New("no operations")
	}
	h.Subresource = d.Text("subresource", "")
	h.NeedsChange = h.Field != nil && (on == "update" || on == "field")
	if on == "field" && h.Field == nil {
		return declared{}, errors.New("a field handler without a field")
	}
	if err := addFilters(h, d); err != nil {
		return declared{}, err
	}
	return declared{family, h.Field, h}, addSides(h, d)
}

func idOf(t *testing.T, on string, d vectors.Fields) string {
	t.Helper()
	id, ok := d["id"].(string)
	if !ok {
		if id, ok = d["fn"].(string); !ok {
			t.Fatalf("neither id nor function: %v", d)
		}
	}
	return handlers.FullID(id, families[on], pathOf(t, d["field"]))
}

func addFilters(h *handlers.Handler, d vectors.Fields) error {
	for _, name := range []string{"labels", "annotations"} {
		filters, err := metadataFilters(name, d.Mapping(name))
		if err != nil {
			return err
		}
		h.Filters = append(h.Filters, filters...)
	}
	if d["value"] != nil {
		var err error
		if h.Value, err = fieldPattern(h.Field, d["value"]); err != nil {
			return fmt.Errorf("value: %w", err)
		}
	}
	if d["when"] != nil {
		filter, err := whenFilter(d.Mapping("when"))
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		h.Filters = append(h.Filters, filter)
	}
	return nil
}

// addSides adds what is demanded of the old and of the new value.
func addSides(h *handlers.Handler, d vectors.Fields) error {
	for name, side := range map[string]*handlers.Pattern{"old": &h.From, "new": &h.To} {
		if d[name] == nil {
			continue
		}
		if d["value"] != nil {
			return fmt.Errorf("value together with %s", name)
		}
		var err error
		if *side, err = fieldPattern(h.Field, d[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
