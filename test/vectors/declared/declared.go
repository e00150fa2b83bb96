package declared

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// options lists the options that all decorators of Kopf accept.
var options = []string{
	"on", "id", "fn", "resource", "param", "labels", "annotations", "field", "value", "old", "new", "when", "deleted",
	"optional", "errors", "timeout", "retries", "backoff", "behave", "interval", "sharp", "idle", "initial_delay",
	"cancellation_backoff", "cancellation_timeout", "cancellation_polling", "operation", "operations", "subresource",
	"persistent", "side_effects", "ignore_failures",
}

var families = map[string]handlers.Family{
	"create": handlers.Changing, "update": handlers.Changing, "delete": handlers.Changing, "resume": handlers.Changing,
	"field": handlers.Changing, "event": handlers.Watching, "timer": handlers.Background, "daemon": handlers.Background,
	"index": handlers.Indexing, "validate": handlers.Admitting, "mutate": handlers.Admitting,
}

// Activity reports whether a decorator is for handlers without an object.
func Activity(on string) bool {
	return on == "startup" || on == "cleanup" || on == "login" || on == "probe"
}

// Declared is one declaration, and the handler that it makes. The handler has no function yet.
type Declared struct {
	Handler *handlers.Handler
	// Options are all that is said.
	Options vectors.Fields
	// SelectsServed is true if the handler is for the served resource.
	SelectsServed bool
}

// Handlers reads the declarations. Activities are left out. An error is a mistake that Kopf would refuse.
func Handlers(t testing.TB, list []any, served discovery.Resource) ([]Declared, error) {
	t.Helper()
	var all []Declared
	for _, item := range list {
		d := vectors.Known(t, item, options...)
		if Activity(d.Text("on", "")) {
			continue
		}
		mine, err := selects(t, d["resource"], served)
		if err != nil {
			return nil, err
		}
		h, err := newHandler(t, d)
		if err != nil {
			return nil, err
		}
		all = append(all, Declared{Handler: h, Options: d, SelectsServed: mine})
	}
	return all, nil
}

// Family is that of a decorator.
func Family(t testing.TB, on string) handlers.Family {
	t.Helper()
	family, ok := families[on]
	if !ok {
		t.Fatalf("the harness does not know the decorator %q", on)
	}
	return family
}

func newHandler(t testing.TB, d vectors.Fields) (*handlers.Handler, error) {
	t.Helper()
	on := d.Text("on", "")
	field, err := fieldOf(d["field"])
	if err != nil {
		return nil, err
	}
	family := Family(t, on)
	h := &handlers.Handler{
		ID: ID(d), Family: family, FunctionKey: d.Text("fn", ID(d)), EvenIfDeleted: d.Flag("deleted"),
		Optional: d.Flag("optional"), Initial: on == "resume", Mutating: on == "mutate", Field: field,
		NeedsChange: on == "update" || on == "field", Subresource: d.Text("subresource", ""),
		Policy: Policy(t, d), Background: background(t, on, d),
	}
	h.ID = h.FullID()
	if on == "create" || on == "update" || on == "delete" {
		h.Reason = cause.Reason(on)
	}
	if _, given := d["field"]; on == "field" && !given {
		return nil, errors.New("a field handler without a field")
	}
	if on != "field" && on != "update" && (d["old"] != nil || d["new"] != nil) {
		return nil, fmt.Errorf("%s handlers have neither old nor new", on)
	}
	return h, errors.Join(addOperations(h, d), addFilters(h, d), addSides(h, d))
}

// Sub is a sub-handler as the function of its parent declares it. The parent's field is not in it yet.
func Sub(t testing.TB, parent *handlers.Handler, spec any) (*handlers.Handler, vectors.Fields, error) {
	t.Helper()
	d := vectors.Known(t, spec, "id", "fn", "param", "behave", "labels", "annotations", "when", "backoff", "errors",
		"retries",
		"timeout", "field", "value", "old", "new")
	field, err := fieldOf(d["field"])
	if err != nil {
		return nil, nil, err
	}
	h := &handlers.Handler{ID: ID(d), FunctionKey: d.Text("fn", ID(d)), Field: field, Policy: Policy(t, d)}
	if !parent.NeedsChange && (d["old"] != nil || d["new"] != nil) {
		return nil, nil, errors.New("only sub-handlers of update and field handlers have old and new")
	}
	return h, d, errors.Join(addFilters(h, d), addSides(h, d))
}

// ID is the id without its field: the explicit one, or else the name of the function.
func ID(d vectors.Fields) string { return d.Text("id", d.Text("fn", "fn")) }

// fieldOf reads a specification of a field: a string with dots, or a list of keys. A null or an empty list is none.
func fieldOf(spec any) (diff.Path, error) {
	switch spec := spec.(type) {
	case nil, string:
		return vectors.Path(spec), nil
	case []any:
		for _, key := range spec {
			if _, isText := key.(string); !isText {
				return nil, fmt.Errorf("no specification of a field: %v", spec)
			}
		}
		if len(spec) == 0 {
			return nil, nil
		}
		return vectors.Path(spec), nil
	default:
		return nil, fmt.Errorf("no specification of a field: %v", spec)
	}
}

func addOperations(h *handlers.Handler, d vectors.Fields) error {
	list := d.List("operations")
	if d["operations"] != nil && len(list) == 0 {
		return errors.New("no operations")
	}
	if one := d.Text("operation", ""); one != "" {
		list = append(slices.Clone(list), one)
	}
	h.Operations = texts(list)
	return nil
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
		if h.Value, err = fieldPattern(d["field"], d["value"]); err != nil {
			return fmt.Errorf("value: %w", err)
		}
	}
	if d["when"] != nil {
		filter, err := whenFilter(h.Family, d.Mapping("when"))
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		h.Filters = append(h.Filters, filter)
	}
	return nil
}

// addSides adds the conditions on the old and the new value.
func addSides(h *handlers.Handler, d vectors.Fields) error {
	for name, side := range map[string]*handlers.ValuePattern{"old": &h.From, "new": &h.To} {
		if d[name] == nil {
			continue
		}
		if d["value"] != nil {
			return fmt.Errorf("value together with %s", name)
		}
		var err error
		if *side, err = fieldPattern(d["field"], d[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
