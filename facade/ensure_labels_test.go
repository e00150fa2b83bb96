package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const enforceLabel = "pod-security.kubernetes.io/enforce"

// TestInheritedLabels shows that children inherit the labels that the cluster does not act upon, a Namespace
// inherits none, and NoInheritedLabels turns inheritance off. An object that the parent cannot own is not adopted,
// except with AsKopf. Deviation: D-adopt-namespace.
func TestInheritedLabels(t *testing.T) {
	asKopf, none := kopf.AsKopf(), kopf.Settings{}
	none.Execution.NoInheritedLabels = true
	for name, c := range map[string]struct {
		settings                kopf.Settings
		street, room, namespace bool // whether the labels are inherited
		canAdopt                bool
	}{
		"Default": {kopf.Settings{}, true, false, false, false},
		"None":    {none, false, false, false, false},
		"AsKopf":  {asKopf, true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var adopted [2]error
				owned := &corev1.ConfigMap{}
				_, stop := h.runWith(c.settings, func(s houseSel) {
					s.OnUpdate("ensure", func(ctx context.Context, c *houseChange) error {
						pod := &corev1.ConfigMap{}
						pod.Namespace = "elsewhere"
						adopted = [2]error{c.Adopt(pod), c.Adopt(&corev1.Namespace{})}
						owned = &corev1.ConfigMap{}
						return errors.Join(c.Adopt(owned), ensure(ctx, c))
					})
				})
				defer stop()
				h.createHouseAndWait()
				labels := map[string]string{"street": "high", enforceLabel: "privileged", parentLabel: "mine"}
				h.api.Edit(houses, "default", "home", func(house map[string]any) {
					(&unstructured.Unstructured{Object: house}).SetLabels(labels)
				})
				h.changeRooms("bath=1", "Namespace//annex")
				bath := h.room("default", "bath").GetLabels()
				annex := (&unstructured.Unstructured{Object: h.api.Object(clusterNamespaces, "", "annex")}).GetLabels()
				if (bath["street"] != "") != c.street || (bath[enforceLabel] != "") != c.room {
					t.Errorf("unexpected labels of the child: %v", bath)
				}
				if (annex[enforceLabel] != "") != c.namespace || (annex["street"] != "") != c.namespace {
					t.Errorf("unexpected labels of the Namespace: %v", annex)
				}
				if got := owned.Labels; (got["street"] != "") != c.street || !c.canAdopt && got[parentLabel] != "" {
					t.Errorf("an adopted child does not get the label of Ensure: got %v", got)
				}
				for _, err := range adopted {
					if c.canAdopt != (err == nil) || err != nil && !strings.Contains(err.Error(), "Ensure") {
						t.Errorf("adopting an object that the parent cannot own: got %v", err)
					}
				}
			})
		})
	}
}
