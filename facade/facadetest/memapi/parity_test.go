package memapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestParityWithTheRealServer sends one script to both servers. Their answers and the events of their watches must be
// equal.
func TestParityWithTheRealServer(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("needs a real API server: make test-all runs it")
	case os.Getenv("KUBEBUILDER_ASSETS") == "":
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-all`, or `make assets` for the folder to set it to")
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"), CRDDirectoryPaths: []string{
			filepath.Join("testdata", "crds.yaml"),
		},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 5 * time.Minute,
		ControlPlaneStopTimeout: 5 * time.Minute,
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("feature-gates", "ShardedListAndWatch=true")
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting etcd and kube-apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	genuine, own := newPlayer(
		t, strings.TrimSuffix(config.Host, "/"), transport,
	), newPlayer(t, "http://mem", inMemory(t))

	from := map[string][2]string{}
	for kind := range kindsOf {
		from[kind] = [2]string{genuine.version(kind), own.version(kind)}
	}
	number := 0
	for _, r := range script() {
		number++
		want, got := genuine.play(r), own.play(r)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf(
				"request %d: %s %s %s/%s %s\n%s\n-real, +memory:\n%s", number, r.method, r.kind, r.name, r.subresource,
				r.contentType,
				r.body, d,
			)
		}
	}
	for _, kind := range []string{widgets, gadgets, configmaps, gizmos} {
		last := request{
			method: http.MethodPost, kind: kind, contentType: jsonContentType,
			body: object(kind, "last", `,"labels":{"l":"1"}`, content(kind, "")),
		}
		genuine.play(last)
		own.play(last)
		for _, query := range []string{
			"resourceVersion=", "labelSelector=l%3D1&resourceVersion=",
			"fieldSelector=metadata.name%3Dlast&resourceVersion=",
		} {
			want, got := genuine.events(
				kind, query+from[kind][0], "last",
			), own.events(kind, query+from[kind][1], "last")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the watch of %s by %s: -real, +memory:\n%s", kind, query, d)
			}
			t.Logf("%d events of %s by %s", len(want), kind, query)
		}
		// Without a version, a watch begins with the present objects.
		if d := cmp.Diff(genuine.events(kind, "", "last"), own.events(kind, "", "last")); d != "" {
			t.Errorf("the watch of %s from now on: -real, +memory:\n%s", kind, d)
		}
	}
	t.Logf("%d requests", number)
	t.Run("Cluster", func(t *testing.T) { playCluster(t, genuine) })
	t.Run("Events", func(t *testing.T) { playEvents(t, genuine, own) })
	t.Run("Shards", func(t *testing.T) { playShards(t, genuine, own) })
	t.Run("Parts", func(t *testing.T) { playPages(t, genuine, own) })
	t.Run("Metadata", func(t *testing.T) { playMetadata(t, genuine, own) })
	t.Run("Names", func(t *testing.T) { playNames(t, genuine, own) })
	t.Run("Again", func(t *testing.T) { playAgain(t, genuine, own) })
	t.Run("Garbage", func(t *testing.T) { playGarbage(t, environment, genuine) })
	// Last: the real garbage collector is slow for objects from before its start.
	t.Run("BuiltIn", func(t *testing.T) { playBuiltIn(t, genuine, own) })
}

func script() []request {
	var all []request
	for _, kind := range []string{widgets, gadgets, configmaps} {
		all = append(all, requestsOfKind(kind)...)
	}
	for seed := range uint64(3) {
		all = append(all, randomScript(seed, 150)...)
	}
	return slices.Concat(all, schemas(), applies(), dryRunRequests(), deletions(), reads())
}

func inMemory(t *testing.T) *memapi.Server {
	t.Helper()
	definitions, err := memapi.Definitions(filepath.Join("testdata", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	return server
}
