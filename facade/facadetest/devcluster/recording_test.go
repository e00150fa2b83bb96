package devcluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestRecording shows that the file has each request for objects as an audit event, and nothing of former runs.
func TestRecording(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(file, []byte("a former run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, end := startCluster(t, devcluster.Options{Record: file})
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(cluster.Config(), "shops.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if err := createConfigMap(t, client, "a"); err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err == nil {
		t.Error("a pod that does not exist has no log")
	}
	byName := metav1.ListOptions{FieldSelector: "metadata.name=b"}
	watch, err := client.AppsV1().Deployments("").Watch(t.Context(), byName)
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	end()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(content)) {
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		o := event.ObjectRef
		got = append(got, strings.Join([]string{event.Verb, o.APIGroup, o.Resource, o.Subresource, o.Namespace, o.Name},
			","))
		if event.APIVersion != "audit.k8s.io/v1" || event.Kind != "Event" ||
			event.User.Username != "devcluster-admin" ||
			!strings.HasSuffix(event.UserAgent, "/shops.example.org") {
			t.Errorf("an event has its kind, the user and the user agent: %s", line)
		}
	}
	want := []string{"create,,configmaps,,default,", "get,,pods,log,default,web", "watch,apps,deployments,,,b"}
	if !slices.Equal(want, got) {
		t.Errorf("requests for objects are recorded: want %q, got %q", want, got)
	}
}
