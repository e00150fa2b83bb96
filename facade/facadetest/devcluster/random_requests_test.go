package devcluster_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// maxMemory is the memory limit for the cluster and the client of the test, in MB.
const maxMemory = 200

// TestRandomRequests sends random requests to all endpoints: the cluster must answer, not panic, and keep its memory.
// DEVCLUSTER_GARBAGE sets the duration, which is two seconds by default.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	length := 2 * time.Second
	if text := os.Getenv("DEVCLUSTER_GARBAGE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	var failures atomic.Int64
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, "panic") {
			failures.Add(1)
			t.Log(line)
		}
	}, funcr.Options{})
	cluster, _ := startCluster(t, devcluster.Options{Log: log, PretendReady: true})
	client := plainClient(t, cluster.Config())
	client.Timeout = 10 * time.Second
	luck := rand.New(rand.NewPCG(1, 2))
	count, codes := 0, map[int]int{}
	for deadline := time.Now().Add(length); time.Now().Before(deadline); count++ {
		r, err := http.NewRequestWithContext(t.Context(), methods[luck.IntN(len(methods))],
			cluster.Config().Host+randomPath(luck), strings.NewReader(randomBody(luck)))
		if err != nil {
			continue // the random path is not a URL
		}
		r.Header.Set("Authorization", "Bearer "+cluster.Config().BearerToken)
		r.Header.Set("Content-Type", contentTypes[luck.IntN(len(contentTypes))])
		r.Header.Set("Accept", acceptHeaders[luck.IntN(len(acceptHeaders))])
		response, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", r.Method, r.URL, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		codes[response.StatusCode]++
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	peak := peakMemory(t)
	t.Logf("%d requests in %v, heap %d MB, peak resident memory %d MB, %v", count, length, memory.HeapAlloc>>20, peak,
		codes)
	if peak > maxMemory && !hasRaceDetector() {
		t.Errorf("the peak of the resident memory is %d MB, want at most %d", peak, maxMemory)
	}
	if failures.Load() > 0 {
		t.Errorf("%d requests made the cluster panic", failures.Load())
	}
	if memory.HeapAlloc>>20 > maxMemory {
		t.Errorf("the heap has %d MB, want at most %d", memory.HeapAlloc>>20, maxMemory)
	}
	if codes[http.StatusOK]+codes[http.StatusCreated] == 0 {
		t.Error("at least one random request must succeed")
	}
}

// peakMemory returns the peak of the resident memory of the process in MB; 0 on other systems than Linux.
func peakMemory(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Logf("cannot read the peak of the resident memory: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kilobytes := 0
	if _, err := fmt.Sscanf(rest, "%d kB", &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes >> 10
}

// hasRaceDetector reports whether the test program runs with the race detector, which needs additional memory.
func hasRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

var (
	methods      = []string{"GET", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW"}
	contentTypes = []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/merge-patch+json",
		"application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "x",
		"",
	}
	acceptHeaders = []string{
		"application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "*/*", "", ";;;", "text/html",
		"application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
	}
	words = []string{
		"", "api", "apis", "v1", "apps", "namespaces", "default", "pods", "configmaps", "a", "b", "deployments",
		"scale",
		"status", "openapi", "v2", "v3", "healthz", "apiextensions.k8s.io", "customresourcedefinitions", "..", "%00",
		"ä",
		"serviceaccounts", "token", "proxy", "log", "authorization.k8s.io", "selfsubjectaccessreviews", "secrets",
		"jobs",
		"admissionregistration.k8s.io", "validatingwebhookconfigurations",
	}
	roots = []string{
		"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets", "/api/v1/namespaces",
		"/apis/apps/v1/namespaces/default/deployments", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs",
		"/api/v1/namespaces/default/events",
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
	}
	queries = []string{
		"", "watch=true&timeoutSeconds=1", "limit=1", "limit=x", "continue=YQ", "labelSelector=a%3Db", "dryRun=All",
		"fieldValidation=Strict", "fieldManager=x&force=true", "resourceVersion=1&watch=true&timeoutSeconds=1", "a=b",
		"includeObject=Object", "fieldSelector=x", "resourceVersion=99999999999999999999",
	}
	values = []string{
		`null`, `{}`, `[]`, `"a"`, `1`, `-1`, `1e400`, `true`, `{"name":"a"}`, `{"name":["a"]}`,
		`{"a":{"a":{"a":[1,null]}}}`,
		`[null]`, `[{"name":"a","image":1}]`, `{"replicas":"x"}`, `{"template":[]}`, `{"conditions":[1]}`, `"YQ=="`,
		`{"versions":[{"name":"v1","served":true,"storage":true}],"group":"x.org","names":{"kind":"X","plural":"xs"}}`,
	}
	fields = []string{"metadata", "spec", "status", "data", "kind", "apiVersion", "webhooks", "stringData", "type",
		"items"}
)

func randomPath(luck *rand.Rand) string {
	path := roots[luck.IntN(len(roots))]
	if luck.IntN(3) == 0 {
		path = ""
	}
	for range luck.IntN(5) {
		path += "/" + words[luck.IntN(len(words))]
	}
	return path + "?" + queries[luck.IntN(len(queries))]
}

func randomBody(luck *rand.Rand) string {
	switch luck.IntN(6) {
	case 0:
		return ""
	case 1:
		bytes := make([]byte, luck.IntN(200))
		for i := range bytes {
			bytes[i] = byte(luck.IntN(256))
		}
		return "k8s\x00" + string(bytes)
	case 2:
		return `{"metadata":{"name":"` + words[luck.IntN(len(words))] + `"}}`
	}
	var all []string
	for range luck.IntN(4) {
		all = append(all, `"`+fields[luck.IntN(len(fields))]+`":`+values[luck.IntN(len(values))])
	}
	return "{" + strings.Join(all, ",") + "}"
}
