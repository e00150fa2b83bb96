package configurations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

func TestObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		hooks  []configurations.Hook
		want   []string
	}{
		"Both": {
			"handlers of both types give two objects", []configurations.Hook{mutatingHook, validatingHook},
			kinds("Validating", "Mutating"),
		},
		"One":    {"an object without entries is left out", []configurations.Hook{mutatingHook}, kinds("Mutating")},
		"Nobody": {"no handlers give no objects", nil, nil},
	} {
		objects, err := configurations.ConfigurationObjects("shared", tc.hooks, clientConfig, ownForm)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, object := range objects {
			kind := object.GetObjectKind().GroupVersionKind()
			got = append(got, kind.GroupVersion().String()+" "+kind.Kind+" "+object.GetName())
		}
		if delta := cmp.Diff(tc.want, got); delta != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, delta)
		}
	}
	for _, twice := range [][]configurations.Hook{{validatingHook, validatingHook}, {mutatingHook, mutatingHook}} {
		if _, err := configurations.ConfigurationObjects("shared", twice, clientConfig, ownForm); err == nil {
			t.Errorf("duplicate entries must be an error, as the API server refuses them: %v", twice)
		}
	}
}

func kinds(types ...string) (all []string) {
	for _, one := range types {
		all = append(all, "admissionregistration.k8s.io/v1 "+one+"WebhookConfiguration shared")
	}
	return all
}
