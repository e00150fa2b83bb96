package kopf_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

// router is the Go type of an older version of the definition, in which routes do not have a weight.
type router struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Routes []route `json:"routes"`
	} `json:"spec"`
}

type route struct {
	Host string `json:"host"`
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
}

func (r *router) DeepCopyObject() runtime.Object { return codec.DeepCopy(r) }

const routerDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routers.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Router, listKind: RouterList, plural: routers, singular: router}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              routes:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [host, path]
                items:
                  type: object
                  required: [host, path]
                  properties:
                    {host: {type: string}, path: {type: string}, to: {type: string}, weight: {type: integer}}
`

// schemaRequests counts the requests for schemas, and refuses them if refuse is set.
type schemaRequests struct {
	http.RoundTripper

	isRefusing bool
	count      atomic.Int32
}

func (s *schemaRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(request.URL.Path, "/openapi/") {
		return s.RoundTripper.RoundTrip(request)
	}
	s.count.Add(1)
	if s.isRefusing {
		answer := httptest.NewRecorder()
		answer.WriteHeader(http.StatusForbidden)
		return answer.Result(), nil
	}
	return s.RoundTripper.RoundTrip(request)
}

// TestListKeysOfTheSchema shows that the list keys of the schema keep fields of items that the Go type lacks.
func TestListKeysOfTheSchema(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		refuse bool
		want   any
		lines  int
	}{
		"Read": {
			reason: "the keys of the schema identify the remaining route, which keeps its weight",
			want:   map[string]any{"host": "h", "path": "/b", "to": "new", "weight": int64(2)},
		},
		"Unreadable": {
			reason: "without the schema, the remaining route is ambiguous and loses its weight, which is logged",
			refuse: true, want: map[string]any{"host": "h", "path": "/b", "to": "new"}, lines: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, requests := routersOf(t, "r1", "r2")
				requests.isRefusing = tc.refuse
				output := removeRoutes(t, requests)
				for _, object := range []string{"r1", "r2"} {
					if d := cmp.Diff([]any{tc.want}, routesOf(server, object)); d != "" {
						t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
					}
				}
				if requests.count.Load() != 1 {
					t.Errorf("%d requests for the schema by two objects, want 1", requests.count.Load())
				}
				lines := 0
				for line := range strings.Lines(output) {
					if strings.Contains(line, "items lost fields") && strings.Contains(line, "spec.routes.weight") {
						lines++
					}
				}
				if lines != tc.lines {
					t.Errorf("%s: got %d lines with the lost field, want %d:\n%s", tc.reason, lines, tc.lines, output)
				}
			})
		})
	}
}

var routers = memapi.Resource{
	Group: "example.org", Version: "v1", Kind: "Router", Plural: "routers", Namespaced: true,
}

// routersOf returns a server with the named routers, each of which has two routes.
func routersOf(t *testing.T, names ...string) (*memapi.Server, *schemaRequests) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(routerDefinition), definition); err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(definition); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		server.Put(routers, map[string]any{
			"metadata": map[string]any{"namespace": "ns", "name": name, "uid": name},
			"spec": map[string]any{"routes": []any{
				map[string]any{"host": "h", "path": "/a", "weight": int64(1)},
				map[string]any{"host": "h", "path": "/b", "weight": int64(2)},
			}},
		})
	}
	return server, &schemaRequests{RoundTripper: server}
}

func routesOf(server *memapi.Server, name string) any {
	spec, _ := server.Object(routers, "ns", name)["spec"].(map[string]any)
	return spec["routes"]
}

// removeRoutes runs an operator that removes the first route of each router and changes the second, and returns its
// log.
func removeRoutes(t *testing.T, transport http.RoundTripper) (output string) {
	t.Helper()
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addRouters}})
	kopf.For(op, &router{}).OnCreate("route", func(_ context.Context, c *kopf.Change[*router]) error {
		c.Patch(func(r *router) {
			if len(r.Spec.Routes) == 2 {
				r.Spec.Routes = r.Spec.Routes[1:]
				r.Spec.Routes[0].To = "new"
			}
		})
		return nil
	})
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(transport)))
	r.Ready()
	time.Sleep(30 * time.Second)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	return r.Output()
}

func addRouters(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.org", Version: "v1"}
	s.AddKnownTypeWithName(version.WithKind("Router"), &router{})
	metav1.AddToGroupVersion(s, version)
	return nil
}
