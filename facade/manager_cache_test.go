package kopf_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestLimitsOfTheManagersCache shows that the set-up logs the options of the manager's cache that do not apply to
// handlers, with advice.
func TestLimitsOfTheManagersCache(t *testing.T) {
	shops := map[string]cache.Config{"shop-b": {}, "shop-a": {}}
	serving := labels.SelectorFromSet(labels.Set{"serve": "yes"})
	const namespaces, selectors, byObject = "Cache.DefaultNamespaces", "default selectors", "Cache.ByObject"
	tests := map[string]struct {
		reason     string
		options    cache.Options
		settings   kopf.Settings
		want       []string // in one line each
		wantAbsent []string
	}{
		"Default": {"a cache without limits logs nothing", cache.Options{}, kopf.Settings{}, nil,
			[]string{"Cache", "cache"}},
		"Namespaces": {
			"namespaces of the cache that the settings do not have are logged", cache.Options{DefaultNamespaces: shops},
			kopf.Settings{},
			[]string{namespaces, "shop-a", "shop-b", "Settings.Namespaces", `"operator"="test.example.org"`},
			[]string{byObject},
		},
		"NamespacesAgain": {
			"namespaces of the cache that the settings also have are not logged",
			cache.Options{DefaultNamespaces: shops},
			kopf.Settings{Namespaces: []string{"shop-a", "shop-b"}}, nil, []string{namespaces},
		},
		"AllNamespaces": {
			"a cache of all namespaces is not limited by the other ones",
			cache.Options{DefaultNamespaces: map[string]cache.Config{
				cache.AllNamespaces: {}, "shop": {LabelSelector: serving},
			}}, kopf.Settings{}, nil, []string{namespaces},
		},
		"Selector": {
			"a default selector is logged, because handlers see all objects",
			cache.Options{DefaultLabelSelector: serving}, kopf.Settings{},
			[]string{selectors, "MatchingLabels"}, []string{namespaces},
		},
		"ByObject": {
			"a selector for a handled kind is logged", cache.Options{ByObject: map[client.Object]cache.ByObject{
				&Widget{}: {Label: serving},
			}}, kopf.Settings{}, []string{byObject, "Kind=Widget", "MatchingLabels"}, []string{namespaces, selectors},
		},
		"ByObjectNamespaces": {
			"namespaces for a kind that is handled in all namespaces are logged",
			cache.Options{ByObject: map[client.Object]cache.ByObject{
				&Widget{}: {Namespaces: shops},
			}}, kopf.Settings{}, []string{byObject, "Kind=Widget", "Settings.Namespaces"}, []string{namespaces},
		},
		"ByObjectElsewhere": {
			"a selector for a kind without handlers is not logged",
			cache.Options{ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Label: serving},
			}}, kopf.Settings{}, nil, []string{byObject},
		},
		"ByObjectTransform": {
			"a transformation is not logged, because it is not a limit",
			cache.Options{ByObject: map[client.Object]cache.ByObject{
				&Widget{}: {Transform: cache.TransformStripManagedFields()},
			}}, kopf.Settings{}, nil, []string{byObject},
		},
		"Both": {
			"default namespaces are logged even if another kind has options of its own", cache.Options{
				DefaultNamespaces: shops,
				ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: serving}},
			}, kopf.Settings{}, []string{namespaces, "shop-a"}, []string{byObject},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var lines []string
			scheme := newScheme(t)
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
				Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: tc.options,
				MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
					return testrestmapper.TestOnlyStaticRESTMapper(scheme), nil
				},
				Logger: funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}, funcr.Options{}),
			})
			if err != nil {
				t.Fatal(err)
			}
			op := kopf.New("test.example.org", tc.settings)
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			if err := op.SetupWithManager(m); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(tc.want) > 0 && !slices.ContainsFunc(lines, func(line string) bool {
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(line, part) })
			}) {
				t.Errorf("%s: no line has all of %q: %q", tc.reason, tc.want, lines)
			}
			for _, part := range tc.wantAbsent {
				if strings.Contains(strings.Join(lines, "\n"), part) {
					t.Errorf("%s: a line has %q: %q", tc.reason, part, lines)
				}
			}
		})
	}
}
