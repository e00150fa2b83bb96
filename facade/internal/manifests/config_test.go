package manifests_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
)

// generatedDeployment returns the Deployment of an operator without admission handlers.
func generatedDeployment(t *testing.T, replicas, shards int) appsv1.Deployment {
	t.Helper()
	input := manifests.ManifestInput{
		Name: "kopf-runtime.example.org", Args: []string{"--all-namespaces"}, Coordinated: true,
		ExitTime: 67 * time.Second, Shards: shards,
	}
	options := manifests.Options{Format: manifests.Plain, Replicas: replicas, Image: "operator"}
	text := joined(generate(t, input, options))
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "kind: Deployment\n") {
			return parsedDeployment(t, document)
		}
	}
	t.Fatalf("there is no Deployment in:\n%s", text)
	return appsv1.Deployment{}
}

func parsedDeployment(t *testing.T, text string) (d appsv1.Deployment) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestConfigFollowsTheCommand shows that the Deployments for kustomize in the folder config have the pods and the
// updates of those that the command prints.
func TestConfigFollowsTheCommand(t *testing.T) {
	content := func(name string) string {
		text, err := os.ReadFile("../../../config/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want, got := generatedDeployment(t, 1, 0), parsedDeployment(t, content("manager/manager.yaml"))
	got.Spec.Template.Spec.ServiceAccountName = want.Spec.Template.Spec.ServiceAccountName // the names differ
	if d := cmp.Diff(want.Spec.Template.Spec, got.Spec.Template.Spec); d != "" {
		t.Errorf("config/manager/manager.yaml has other pods (-printed, +config):\n%s", d)
	}
	if d := cmp.Diff(want.Spec.Strategy, got.Spec.Strategy); d != "" {
		t.Errorf("config/manager/manager.yaml has another strategy (-printed, +config):\n%s", d)
	}
	want, got = generatedDeployment(t, 2, 0), parsedDeployment(t, content("replicas/deployment.yaml"))
	if d := cmp.Diff(want.Spec.Strategy, got.Spec.Strategy); d != "" {
		t.Errorf("config/replicas/deployment.yaml has another strategy (-printed, +config):\n%s", d)
	}
	want, got = generatedDeployment(t, 3, 16), parsedDeployment(t, content("sharding/deployment.yaml"))
	want.Spec.Selector, want.Spec.Template = nil, got.Spec.Template
	if d := cmp.Diff(want.Spec, got.Spec); d != "" {
		t.Errorf("config/sharding/deployment.yaml has other updates (-printed, +config):\n%s", d)
	}
}
