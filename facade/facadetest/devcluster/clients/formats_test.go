package clients_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestChartsAndKustomizations shows that helm and kubectl turn their formats into the objects of the plain format, and
// that helm lint has no complaints.
func TestChartsAndKustomizations(t *testing.T) {
	helm := build(t, "helm", "go.mod", "helm.sh/helm/v3/cmd/helm", "helm")
	nowhere := cluster{kubeconfig: filepath.Join(t.TempDir(), "missing")}
	succeed := func(t *testing.T, program string, args ...string) string {
		t.Helper()
		out, err := run(t, program, nowhere, "", args...)
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
		}
		return out
	}
	for name, one := range shippedOperators(t) {
		t.Run(name, func(t *testing.T) {
			flags := append(strings.Fields(one.flags), "--with=monitoring,network-policy", "--image=host:5000/a/b:v1")
			plain := objectsOf(t, one.print(t, flags...))
			folder := t.TempDir()
			one.print(t, append(flags, "--format=kustomize", "--output="+folder)...)
			requireSame(t, "kustomize", plain, objectsOf(t, succeed(t, assetsKubectl(t), "kustomize", folder)))

			folder = t.TempDir()
			one.print(t, append(flags, "--format=helm", "--output="+folder)...)
			out := succeed(t, helm, "lint", "--strict", folder)
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "[") && !strings.Contains(line, "icon is recommended") {
					t.Errorf("helm lint must have no complaints: %s", line)
				}
			}
			namespace := ""
			for key := range plain {
				if kind, rest, _ := strings.Cut(key, " "); kind == "Namespace" {
					namespace = strings.TrimSpace(rest)
					delete(plain, key) // Helm creates it
				}
			}
			args := []string{"template", "release", folder, "--include-crds", "--namespace"}
			requireSame(t, "helm", plain, objectsOf(t, succeed(t, helm, append(args, namespace)...)))
			if name == "full" {
				out, err := run(t, helm, nowhere, "", append(args, "elsewhere")...)
				if err == nil || !strings.Contains(out, "install the chart in the namespace full-system") {
					t.Errorf("webhooks name the namespace, so that another one must be refused: %v\n%s", err, out)
				}
			}
		})
	}
}

// objectsOf returns the objects of a stream by kind, namespace and name.
func objectsOf(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document+"\n"), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if object == nil {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		key := strings.TrimSpace(strings.ReplaceAll(
			fmt.Sprintln(object["kind"], metadata["namespace"], metadata["name"]), "<nil> ", ""))
		if all[key] != nil {
			t.Fatalf("%s is there twice", key)
		}
		all[key] = object
	}
	return all
}

// requireSame compares the objects of a format with those of the plain one.
func requireSame(t *testing.T, format string, plain, got map[string]map[string]any) {
	t.Helper()
	if d := cmp.Diff(plain, got); d != "" {
		t.Errorf("%s must have the objects of the plain format (-plain, +got):\n%s", format, d)
	}
}
