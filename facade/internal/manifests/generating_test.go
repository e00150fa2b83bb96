package manifests_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// hostile is a text that YAML and templates could take for something else.
const hostile = "a: {{ .Values.image }} #\n- b"

// scraper is the suffix of the objects for Prometheus.
const scraper = "metrics-reader"

// full is an operator with all parts.
func full() (manifests.ManifestInput, manifests.Options) {
	return manifests.ManifestInput{
			Name: "widgets.example.org", Args: []string{"--all-namespaces"}, Peering: "widgets.example.org",
			Coordinated: true, MetricsSecure: true, ExitTime: 67 * time.Second,
			Reviews: true, WebhookPort: 9443, ServicePort: 443,
			Service:        types.NamespacedName{Namespace: "widgets-system", Name: "webhook"},
			CertificateDir: "/certificate", Needs: []clusterneeds.Need{
				{Rule: rule("example.org", "widgets", "watch", "list"), Feature: "handled objects"},
				{Rule: rule("", hostile, "get"), Feature: hostile},
				{Rule: rule("", "secrets", "get"), Scope: clusterneeds.OneNamespace, Feature: "Secret"},
			},
		}, manifests.Options{
			Format: manifests.Plain, Replicas: 2, CertManager: true, Image: "image:v1",
			With: []string{"monitoring", "network-policy"},
		}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// objects returns the objects of all documents, by kind, namespace and name.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		metadata, _ := object["metadata"].(map[string]any)
		all[fmt.Sprintln(object["kind"], metadata["namespace"], metadata["name"])] = object
	}
	return all
}

// generate returns the contents by file.
func generate(t *testing.T, o manifests.ManifestInput, options manifests.Options) map[string]string {
	t.Helper()
	files, _, err := manifests.Generate(o, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, one := range files {
		all[one.Name] = one.Content
	}
	return all
}

func joined(files map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, files[name])
	}
	return strings.Join(all, "\n---\n")
}

// TestHelmCharts shows what helm itself does not show in package clients, which compares the objects of all formats.
func TestHelmCharts(t *testing.T) {
	o, options := full()
	options.Format = manifests.Helm
	chart := generate(t, o, options)
	if notes := chart["templates/NOTES.txt"]; !strings.Contains(notes, "never upgrades") {
		t.Errorf("the notes say that Helm does not upgrade CRDs: %s", notes)
	}
	if chart["crds/crds.yaml"] == "" || chart["templates/namespace.yaml"] != "" {
		t.Error("CRDs are in a folder of their own, and Helm creates the namespace")
	}
}

// TestKustomizeHasTheSameObjects shows that the files of the kustomization have the objects of the plain format, except
// the image, which kustomize replaces.
func TestKustomizeHasTheSameObjects(t *testing.T) {
	o, options := full()
	options.Image = "operator"
	plain := objects(t, joined(generate(t, o, options)))
	options.Format, options.Image = manifests.Kustomize, "host:5000/path/widgets:v1"
	files := generate(t, o, options)
	var kustomization struct {
		Resources []string
		Images    []struct{ Name, NewName, NewTag string }
	}
	if err := yaml.Unmarshal([]byte(files["kustomization.yaml"]), &kustomization); err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, name := range kustomization.Resources {
		listed[name] = files[name]
	}
	if d := cmp.Diff(plain, objects(t, joined(listed))); d != "" || len(listed) != len(files)-1 {
		t.Errorf("the kustomization lists all files (-plain, +kustomize):\n%s", d)
	}
	if i := kustomization.Images; len(i) != 1 || i[0].NewName != "host:5000/path/widgets" || i[0].NewTag != "v1" {
		t.Errorf("the image of the Deployment is replaced: %+v", kustomization.Images)
	}
}

// TestHostileTexts shows that texts of the user stay texts: a resource of a declared rule is not executed, and does not
// add lines.
func TestHostileTexts(t *testing.T) {
	o, options := full()
	files := generate(t, o, options)
	role := objects(t, files["rbac.yaml"])["ClusterRole <nil> widgets.example.org\n"]
	rules, _ := role["rules"].([]any)
	if len(rules) != 2 {
		t.Fatalf("two rules: %v", rules)
	}
	second, _ := rules[1].(map[string]any)
	if d := cmp.Diff([]any{hostile}, second["resources"]); d != "" {
		t.Errorf("the resource is as declared (-want, +got):\n%s", d)
	}
}

// TestOwnPeeringCRDs shows that the kinds of peering are printed once, also if the user's folder has them.
func TestOwnPeeringCRDs(t *testing.T) {
	o, options := full()
	options.Only = []string{"crds"}
	crds, err := manifests.ReadCRDs("../../../config/crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range [][]manifests.CRD{nil, crds} {
		files, _, err := manifests.Generate(o, options, given)
		if err != nil || strings.Count(files[0].Content, "name: kopfpeerings.kopf.dev\n") != 1 {
			t.Errorf("with %d CRDs, the kind is printed once: %v, error %v", len(given), files, err)
		}
	}
}

// TestScopes shows which roles the scopes of rules become.
func TestScopes(t *testing.T) {
	served := clusterneeds.Need{Rule: rule("", "pods", "get")}
	cluster := clusterneeds.Need{Rule: rule("", "nodes", "get"), Scope: clusterneeds.WholeCluster}
	own := clusterneeds.Need{Rule: rule("", "pods", "get"), Scope: clusterneeds.OneNamespace}
	other := own
	other.Rule, other.Namespace = rule("", "events", "create"), "default"
	for name, c := range map[string]struct {
		reason string
		served []string
		needs  []clusterneeds.Need
		want   string
	}{
		"cluster": {"a ClusterRole for the whole cluster grants everything, so that no Role repeats it", nil,
			[]clusterneeds.Need{served, cluster, own}, "ClusterRole/"},
		"pattern": {"namespaces of a pattern are unknown, so a ClusterRole is needed", []string{"team-*"},
			[]clusterneeds.Need{served}, "ClusterRole/"},
		"names": {"each named namespace has a Role, and cluster-scoped kinds a ClusterRole", []string{"b", "a"},
			[]clusterneeds.Need{served, cluster}, "ClusterRole/ Role/a Role/b"},
		"own": {"the operator's own namespace has one Role, also if it is served", []string{"x-system"},
			[]clusterneeds.Need{served, own, other}, "Role/default Role/x-system"},
	} {
		t.Run(name, func(t *testing.T) {
			o := manifests.ManifestInput{Name: "x.example.org", Needs: c.needs}
			for _, one := range c.served {
				o.Namespaces = append(o.Namespaces, namespaces.ParsePattern(one))
			}
			files := generate(t, o, manifests.Options{Format: manifests.Plain, Replicas: 1, Only: []string{"rbac"}})
			var roles []string
			for name := range objects(t, files["rbac.yaml"]) {
				if f := strings.Fields(name); f[0] == "Role" || f[0] == "ClusterRole" {
					roles = append(roles, f[0]+"/"+strings.TrimPrefix(f[1], "<nil>"))
				}
			}
			slices.Sort(roles)
			if got := strings.Join(roles, " "); got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

// TestReplicas shows what depends on the number of replicas.
func TestReplicas(t *testing.T) {
	o, options := full()
	for replicas, want := range map[int]string{1: "Recreate", 2: "RollingUpdate"} {
		options.Replicas = replicas
		text := generate(t, o, options)["deployment.yaml"]
		has := strings.Contains(text, "PodDisruptionBudget") && strings.Contains(text, "topologySpreadConstraints")
		if !strings.Contains(text, "type: "+want) || has != (replicas > 1) {
			t.Errorf("%d replicas: want %s, and a budget and a spread for several:\n%s", replicas, want, text)
		}
	}
}

// TestMemoryLimits shows that garbage is collected more often before the container reaches its memory limit.
func TestMemoryLimits(t *testing.T) {
	o, options := full()
	deployment := objects(t, generate(t, o, options)["deployment.yaml"])["Deployment widgets-system widgets-operator\n"]
	data, err := yaml.Marshal(deployment)
	if err != nil {
		t.Fatal(err)
	}
	var typed appsv1.Deployment
	if err := yaml.Unmarshal(data, &typed); err != nil {
		t.Fatal(err)
	}
	container := typed.Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(container.Env, func(one corev1.EnvVar) bool { return one.Name == "GOMEMLIMIT" })
	if at < 0 {
		t.Fatal("there is no GOMEMLIMIT")
	}
	number, isMebibytes := strings.CutSuffix(container.Env[at].Value, "MiB") // quantities have no B
	soft, err := resource.ParseQuantity(number + "Mi")
	share := soft.AsApproximateFloat64() / container.Resources.Limits.Memory().AsApproximateFloat64()
	if err != nil || !isMebibytes || share < 0.85 || share > 0.9 {
		t.Errorf("GOMEMLIMIT is %q, %.2f of the memory limit: want about 0.9", container.Env[at].Value, share)
	}
}

// TestScraper shows that Prometheus reads metrics with authentication by a token for nothing else.
func TestScraper(t *testing.T) {
	o, options := full()
	text := generate(t, o, options)["monitoring.yaml"]
	all := objects(t, text)
	role := all["ClusterRole <nil> widgets.example.org-metrics-reader\n"]
	if d := cmp.Diff([]any{map[string]any{
		"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"},
	}}, role["rules"]); d != "" {
		t.Errorf("the service account may read metrics only (-want, +got):\n%s", d)
	}
	for _, one := range []string{
		"scheme: https", "          name: widgets-operator-metrics-reader\n          key: token",
		"kubernetes.io/service-account.name: widgets-operator-metrics-reader",
	} {
		if !strings.Contains(text, one) {
			t.Errorf("Prometheus needs %q:\n%s", one, text)
		}
	}
	o.MetricsSecure = false
	if text := generate(t, o, options)["monitoring.yaml"]; strings.Contains(text, scraper) {
		t.Errorf("metrics without authentication need no service account:\n%s", text)
	}
}

// TestGracePeriods shows that the grace period is longer than the exit.
func TestGracePeriods(t *testing.T) {
	for exit, want := range map[time.Duration]int{67 * time.Second: 75, 85 * time.Second: 90, time.Millisecond: 10} {
		o := manifests.ManifestInput{Name: "x.example.org", ExitTime: exit}
		text := generate(t, o, manifests.Options{Format: manifests.Plain, Replicas: 1})["deployment.yaml"]
		if !strings.Contains(text, fmt.Sprintf("terminationGracePeriodSeconds: %d\n", want)) {
			t.Errorf("an exit of %s has a grace period of %d seconds:\n%s", exit, want, text)
		}
	}
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(*manifests.ManifestInput, *manifests.Options)
		want   string
	}{
		"replicas": {"replicas that do not agree on who acts are an error",
			func(o *manifests.ManifestInput, _ *manifests.Options) { o.Coordinated = false },
			"--replicas: without leader"},
		"autoscaling": {"an autoscaler of replicas that wait for each other is an error",
			func(_ *manifests.ManifestInput, o *manifests.Options) { o.With = []string{"autoscaling"} },
			"--with=autoscaling"},
		"certificate": {"a certificate that the operator does not read is an error",
			func(o *manifests.ManifestInput, _ *manifests.Options) { o.CertificateDir = "" }, "set Admission.Certif"},
		"no reviews": {"a certificate without admission handlers is an error",
			func(o *manifests.ManifestInput, _ *manifests.Options) { o.Reviews = false }, "has no admission handlers"},
		"no service": {"a certificate without a Service is an error",
			func(o *manifests.ManifestInput, _ *manifests.Options) { o.Service = types.NamespacedName{} },
			"for a Service"},
		"namespace": {"pods in another namespace than their Service are an error",
			func(_ *manifests.ManifestInput, o *manifests.Options) { o.Namespace = "other" },
			`in the namespace "widgets-system"`},
		"name": {"an invalid namespace is an error", func(p *manifests.ManifestInput, o *manifests.Options) {
			p.Service.Namespace, o.Namespace = "", "Not valid"
		}, "is not the name of a namespace"},
		"number": {"a namespace that YAML reads as a number is an error",
			func(p *manifests.ManifestInput, o *manifests.Options) { p.Service.Namespace, o.Namespace = "", "12" },
			"as a number"},
	} {
		t.Run(name, func(t *testing.T) {
			o, options := full()
			c.change(&o, &options)
			if _, _, err := manifests.Generate(o, options, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: want an error with %q, got %v", c.reason, c.want, err)
			}
		})
	}
	for want, options := range map[string]manifests.Options{
		"--format":        {Format: "ksonnet", Replicas: 1},
		"unknown part":    {Format: manifests.Plain, Replicas: 1, With: []string{"metrics"}},
		"--image":         {Format: manifests.Plain, Replicas: 1, Image: "{{ bad }}"},
		"--replicas: -1:": {Format: manifests.Plain, Replicas: -1},
	} {
		if err := options.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got %v", options, want, err)
		}
	}
}

func TestReadCRDs(t *testing.T) {
	const crd = "# a comment\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: widgets.example.org}\nspec:\n  group: example.org\n  scope: Cluster\n" +
		"  names: {kind: Widget, plural: widgets}\n  versions: [{name: v1, served: true}]\n"
	folder := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "---\r\n" + crd + "---\nkind: Other\n---\n- a list\n", "a.txt": "no: [manifest", "empty.yml": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := manifests.ReadCRDs(folder)
	if err != nil || len(found) != 1 || found[0].Text != crd || found[0].Resources[0].Plural != "widgets" {
		t.Errorf("one CRD with its comment: %+v, error %v", found, err)
	}
	for text, want := range map[string]string{
		"a: [": "bad.yaml: ", "kind: Other": "there are no CRDs",
		strings.Replace(crd, "Cluster", "All", 1): "spec.scope",
	} {
		file := filepath.Join(t.TempDir(), "bad.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := manifests.ReadCRDs(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", text, want, err)
		}
	}
	if _, err := manifests.ReadCRDs(filepath.Join(folder, "missing")); err == nil {
		t.Error("a missing folder is an error")
	}
}
