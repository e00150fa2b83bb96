package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const movers = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: movers.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Mover, plural: movers, singular: mover}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// defineMovers creates or replaces the definition. It contains the unserved version, if any, without serving it.
func defineMovers(t *testing.T, server *memapi.Server, unserved string) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(movers), definition); err != nil {
		t.Fatal(err)
	}
	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		version.Served = version.Name != unserved
	}
	if err := server.Define(definition); err != nil {
		t.Fatal(err)
	}
}

var mover = memapi.Resource{Group: "example.org", Version: "v1", Kind: "Mover", Plural: "movers", Namespaced: true}

// startMovers runs an operator that records its calls.
func startMovers(t *testing.T, server *memapi.Server, noted *childCalls, selector ...string) *facadetest.Runner {
	t.Helper()
	op := kopf.New("test.example.org")
	s := kopf.ForResource(op, selector...)
	note := func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		noted.note("%s in %s", c.Reason, c.Object.GetAPIVersion())
		return nil
	}
	s.OnCreate("c", note)
	s.OnUpdate("u", note)
	s.OnDelete("d", note)
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
	r.Ready()
	return r
}

// TestVersionCeasesToBeServed shows that when a version is no longer served, a selector of it waits until it is served
// again, and one of all versions continues in another version. Neither handles an object twice or misses an edit.
func TestVersionCeasesToBeServed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		selector          []string
		unservedVersion   string
		wantAfterCreation []string
		wantWhileUnserved []string // while the version is not served
		wantServedAgain   []string // when it is served again
		wantAfterDeletion []string
		errors            int
	}{
		"Named": {
			"handlers for one version wait until it is served again", []string{"example.org/v1", "movers"}, "v1",
			[]string{"create in example.org/v1"}, nil, []string{"update in example.org/v1"},
			[]string{"delete in example.org/v1"}, 2, // the watch, the selector
		},
		"Preferred": {
			"handlers for all versions continue in the version that is left", []string{"movers.example.org"}, "v2",
			[]string{"create in example.org/v2"}, []string{"update in example.org/v1"}, nil,
			[]string{"delete in example.org/v2"}, 1, // the watch
		},
		"Other": {
			"handlers for all versions ignore the end of a version that they do not use",
			[]string{"movers.example.org"}, "v1",
			[]string{"create in example.org/v2"}, []string{"update in example.org/v2"}, nil,
			[]string{"delete in example.org/v2"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, noted := memapi.New(), &childCalls{}
				defineMovers(t, server, "")
				r := startMovers(t, server, noted, tc.selector...)
				server.Put(mover, body(map[string]any{"size": int64(1)}))
				time.Sleep(time.Minute)
				noted.want(t, tc.reason+": created", tc.wantAfterCreation...)

				defineMovers(t, server, tc.unservedVersion)
				time.Sleep(time.Minute)
				server.Edit(mover, "ns", "w1", func(o map[string]any) {
					o["spec"] = map[string]any{"size": int64(2)}
				})
				time.Sleep(10 * time.Minute)
				noted.want(t, tc.reason+": edited while a version is not served", tc.wantWhileUnserved...)

				defineMovers(t, server, "")
				time.Sleep(10 * time.Minute)
				noted.want(t, tc.reason+": served again", tc.wantServedAgain...)

				server.Delete(mover, "ns", "w1")
				time.Sleep(time.Minute)
				noted.want(t, tc.reason+": deleted", tc.wantAfterDeletion...)
				if left := server.Object(mover, "ns", "w1"); left != nil {
					t.Errorf("%s: the object is still there: %v", tc.reason, left)
				}
				if n := strings.Count(r.Output(), "level=ERROR"); n != tc.errors {
					t.Errorf("%s: %d errors are logged, want %d:\n%s", tc.reason, n, tc.errors, r.Output())
				}
			})
		})
	}
}

// TestNextVersion shows that an operator that is upgraded to the next version of its kind, or goes back, does not
// handle objects again.
func TestNextVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, noted := memapi.New(), &childCalls{}
		defineMovers(t, server, "")
		server.Put(mover, body(map[string]any{"size": int64(1)}))
		for _, next := range []struct {
			version string
			want    []string
		}{{"v1", []string{"create in example.org/v1"}}, {"v2", nil}, {"v1", nil}} {
			r := startMovers(t, server, noted, "example.org/"+next.version, "movers")
			time.Sleep(time.Minute)
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
			noted.want(t, "with "+next.version, next.want...)
		}
	})
}
