package memapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func TestObjects(t *testing.T) {
	server := memapi.New()
	maps := memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true, Plain: true}
	events := memapi.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true, Plain: true}
	named := func(name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "default", "name": name}}
	}
	for _, name := range []string{"b", "a"} {
		server.Put(maps, named(name))
	}
	server.Put(events, named("that"))
	var got []string
	for _, object := range server.Objects() {
		metadata, _ := object["metadata"].(map[string]any)
		got = append(got, object["apiVersion"].(string)+" "+object["kind"].(string)+" "+metadata["name"].(string))
	}
	if diff := cmp.Diff([]string{"v1 ConfigMap a", "v1 ConfigMap b"}, got); diff != "" {
		t.Errorf("Objects must return all objects in order, without events (-want, +got):\n%s", diff)
	}
}
