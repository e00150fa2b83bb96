package configurations_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

func TestVectorsAdmissionConfiguration(t *testing.T) {
	vectors.Run(t, "admission_configuration", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		got, err := entriesOfCase(t, input)
		if want.Failed(t, got, err) {
			return
		}
		expected := vectors.Known(t, want.Value, "webhooks").List("webhooks")
		for _, entries := range [][]any{expected, got} {
			for _, entry := range entries {
				normalizeEntry(t, entry.(map[string]any))
			}
		}
		if !diff.Equal(expected, got) {
			t.Errorf("-want, +got:\n%s", gocmp.Diff(expected, got))
		}
	})
}

// entriesOfCase returns the entries of the requested type in the form of the API server.
func entriesOfCase(t *testing.T, input vectors.Fields) ([]any, error) {
	d := vectors.Known(t, map[string]any(input),
		"client_config", "handlers", "persistent_only", "reason", "resources", "suffix")
	hooks, err := hooksOf(t, d)
	if err != nil {
		return nil, err
	}
	client := decode[admissionregistrationv1.WebhookClientConfig](t, d["client_config"])
	form := configurations.Form{
		AsKopf: true, Conditions: true, Suffix: d.Text("suffix", "auto.kopf.dev"),
		PersistentOnly: d.Flag("persistent_only"),
	}
	switch reason := d.Text("reason", "validating"); reason {
	case "validating":
		entries, err := configurations.ValidatingEntries(hooks, client, form)
		return decode[[]any](t, entries), err
	case "mutating":
		entries, err := configurations.MutatingEntries(hooks, client, form)
		return decode[[]any](t, entries), err
	default:
		t.Fatalf("the harness does not know the reason %q", reason)
		return nil, nil
	}
}

// hooksOf reads the handlers for all resources of the case.
func hooksOf(t *testing.T, d vectors.Fields) ([]configurations.Hook, error) {
	t.Helper()
	resources := []discovery.Resource{declared.Resource(t, nil)}
	if d["resources"] != nil {
		resources = nil
		for _, one := range d.List("resources") {
			resources = append(resources, declared.Resource(t, one))
		}
	}
	var hooks []configurations.Hook
	for _, resource := range resources {
		all, err := declared.Handlers(t, d.List("handlers"), resource)
		if err != nil {
			return nil, err
		}
		for i, one := range all {
			if i == len(hooks) {
				hooks = append(hooks, hook(t, one))
			}
			if one.SelectsServed {
				hooks[i].Resources = append(hooks[i].Resources, resource)
			}
		}
	}
	return hooks, nil
}

func hook(t *testing.T, of declared.Declared) configurations.Hook {
	t.Helper()
	return configurations.Hook{
		ID: of.Handler.ID, Mutating: of.Handler.Mutating, Operations: of.Handler.Operations,
		Subresource: of.Handler.Subresource, Labels: requirements(t, of.Options.Mapping("labels")),
		SideEffects: of.Options.Flag("side_effects"), IgnoreFailures: of.Options.Flag("ignore_failures"),
		Persistent: of.Options.Flag("persistent"),
		Conditions: []admissionregistrationv1.MatchCondition{{Name: "kopf-has-none", Expression: "true"}},
	}
}

// requirements returns the label requirements that the API server can check, without those of functions.
func requirements(t *testing.T, patterns vectors.Fields) []metav1.LabelSelectorRequirement {
	t.Helper()
	var all []metav1.LabelSelectorRequirement
	for key, pattern := range patterns {
		one := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn}
		special, _ := pattern.(map[string]any)
		switch special["$"] {
		case nil:
			one.Values = []string{pattern.(string)}
		case "PRESENT":
			one.Operator = metav1.LabelSelectorOpExists
		case "ABSENT":
			one.Operator = metav1.LabelSelectorOpDoesNotExist
		case "value":
			continue
		default:
			t.Fatalf("the harness does not know the pattern %v", pattern)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b metav1.LabelSelectorRequirement) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// normalizeEntry leaves out empty values, as Go's types do: nulls, an empty list of rules, an empty name of a service.
// It sorts lists whose order does not matter.
func normalizeEntry(t *testing.T, entry map[string]any) {
	t.Helper()
	if entry["objectSelector"] == nil {
		delete(entry, "objectSelector")
	}
	rules, _ := entry["rules"].([]any)
	if len(rules) == 0 {
		delete(entry, "rules")
	}
	for _, rule := range rules {
		for _, list := range rule.(map[string]any) {
			sortTexts(list)
		}
	}
	slices.SortFunc(rules, func(a, b any) int { return cmp.Compare(text(t, a), text(t, b)) })
	client, _ := entry["clientConfig"].(map[string]any)
	service, _ := client["service"].(map[string]any)
	for _, key := range []string{"name", "namespace"} {
		if service[key] == "" {
			delete(service, key)
		}
	}
}

func sortTexts(list any) {
	if texts, is := list.([]any); is {
		slices.SortFunc(texts, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// decode converts a value to another type through JSON.
func decode[T any](t *testing.T, from any) T {
	t.Helper()
	var to T
	if err := json.Unmarshal([]byte(text(t, from)), &to); err != nil {
		t.Fatal(err)
	}
	return to
}
