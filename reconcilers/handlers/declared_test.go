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

// declared is one declaration as two handlers. The words on the values of fields are filters here, and those on the old
// and new ones say nothing on whether the object is of interest at all.
type declared struct {
	family   handlers.Family
	field    diff.Path
	interest *handlers.Handler
	chosen   *handlers.Handler
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
		Optional: d.Flag("optional"), Initial: on == "resume", Field: pathOf(t, d["field"]),
	}
	if on == "create" || on == "update" || on == "delete" {
		h.Reason = cause.Reason(on)
	}
	h.NeedsChange = h.Field != nil && (on == "update" || on == "field")
	if on == "field" && h.Field == nil {
		return declared{}, errors.New("a field handler without a field")
	}
	if err := addFilters(h, d); err != nil {
		return declared{}, err
	}
	interest, chosen := *h, *h
	if d["value"] != nil {
		interest.Field = nil // there is another word on its value than that it is there
	}
	if d["value"] != nil && !h.NeedsChange {
		chosen.Field = nil
	}
	return declared{family, h.Field, &interest, &chosen}, addSides(&chosen, d)
}

func idOf(t *testing.T, on string, d vectors.Fields) string {
	t.Helper()
	id, ok := d["id"].(string)
	if !ok {
		if id, ok = d["fn"].(string); !ok {
			t.Fatalf("neither id nor function: %v", d)
		}
	}
	if field := pathOf(t, d["field"]); field != nil && on != "index" {
		id += "/" + field.String()
	}
	return id
}

func addFilters(h *handlers.Handler, d vectors.Fields) error {
	for _, name := range []string{"labels", "annotations"} {
		filter, err := metadataFilter(name, d.Mapping(name))
		if err != nil {
			return err
		}
		h.Filters = append(h.Filters, filter)
	}
	if d["value"] != nil {
		filter, err := fieldFilter(h.Field, d["value"], either)
		if err != nil {
			return fmt.Errorf("value: %w", err)
		}
		h.Filters = append(h.Filters, filter)
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
	h.Filters = append([]handlers.Filter{}, h.Filters...)
	for name, side := range map[string]func(*cause.Cause) []any{"old": before, "new": after} {
		if d[name] == nil {
			continue
		}
		if d["value"] != nil {
			return fmt.Errorf("value together with %s", name)
		}
		filter, err := fieldFilter(h.Field, d[name], side)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		h.Filters = append(h.Filters, filter)
	}
	return nil
}
