package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// documentServer are the answers of the API server and the requested paths.
type documentServer struct {
	documents      vectors.Fields
	requestedPaths []any
}

func (r *documentServer) Get(_ context.Context, path string) ([]byte, error) {
	r.requestedPaths = append(r.requestedPaths, path)
	if r.documents[path] == nil {
		return nil, nil
	}
	return json.Marshal(r.documents[path])
}

// groupsOf returns nil if the input has no list of groups, which differs from an empty list.
func groupsOf(input vectors.Fields) []string {
	if input["groups"] == nil {
		return nil
	}
	return stringsOf(input.List("groups"))
}

func TestVectorsDiscovery(t *testing.T) {
	vectors.Run(t, "discovery", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "responses", "groups")
		server := &documentServer{documents: input.Mapping("responses"), requestedPaths: []any{}}
		found, err := discovery.ListResources(t.Context(), server, groupsOf(input)...)
		if want.Failed(t, found, err) {
			return
		}
		expected := vectors.Known(t, want.Value, "requests", "resources")
		sorted := func(list []any) []any {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			return list
		}
		if d := cmp.Diff(sorted(expected.List("requests")), sorted(server.requestedPaths)); d != "" {
			t.Errorf("requests: -want, +got:\n%s", d)
		}
		normal := func(list []discovery.Resource) []discovery.Resource {
			for i := range list {
				for _, names := range []*[]string{
					&list[i].Shortcuts, &list[i].Categories, &list[i].Subresources, &list[i].Verbs,
				} {
					if len(*names) == 0 {
						*names = nil
					}
				}
			}
			slices.SortFunc(list, func(a, b discovery.Resource) int { return strings.Compare(a.String(), b.String()) })
			return list
		}
		if d := cmp.Diff(normal(resourcesOf(t, expected.List("resources"))), normal(found)); d != "" {
			t.Errorf("resources: -want, +got:\n%s", d)
		}
	})
}
