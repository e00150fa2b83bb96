package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// hostile is a text that YAML and templates could take for something else.
const hostile = "a: {{ .Values.image }} #\n- b"

// printManifests calls the command manifests of an operator, and returns its output.
type printManifests func(t *testing.T, args ...string) string

// shippedOperator is an operator whose manifests are tested, and its flags.
type shippedOperator struct {
	print printManifests
	flags string
}

// shippedOperators returns two examples, and an operator that has all parts of the manifests.
func shippedOperators(t *testing.T) map[string]shippedOperator {
	t.Helper()
	example := func(name string) shippedOperator {
		const root = "../../../../.." // seen from testdata
		program := build(t, root, "go.mod", "./examples/"+name, name)
		return shippedOperator{func(t *testing.T, args ...string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), program, append([]string{"manifests"}, args...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s manifests %v: %v", name, args, err)
			}
			return string(out)
		}, "--peering=shared --replicas=2 --crds=" + filepath.Join("testdata", root, "examples", name, "crd.yaml")}
	}
	return map[string]shippedOperator{
		"getting-started": example("getting-started"), "database": example("database"),
		"full": {printFull, "--cert-manager --replicas=2 --all-namespaces --peering=full --crds=" +
			filepath.Join("testdata", "crd.yaml")},
	}
}

// printFull prints manifests of an operator with admission handlers, whose declared rule has a hostile text.
func printFull(t *testing.T, args ...string) string {
	t.Helper()
	op := kopf.New("full.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		CertificateDir: "/certificate", Service: "full-system/webhook",
	}})
	op.Needs(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{hostile}, Verbs: []string{"get"}})
	databases := kopf.ForResource(op, "clients.example.org/v1", "databases")
	databases.OnCreate("provision", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
	databases.Validate("quota", func(context.Context, *kopf.Admission[*kopf.Unstructured]) error { return nil })
	databases.Mutate("defaults", func(context.Context, *kopf.Admission[*kopf.Unstructured]) error { return nil })
	command := op.Command()
	var out, hints bytes.Buffer
	command.SetArgs(append([]string{"manifests"}, args...))
	command.SetOut(&out)
	command.SetErr(&hints)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("manifests %v: %v", args, err)
	}
	return out.String()
}

// definitionsOfModule returns the arguments for kubectl with files of CRDs in a module that testdata/crds pins.
func definitionsOfModule(t *testing.T, module string, files ...string) (args []string) {
	t.Helper()
	var downloaded struct{ Dir string }
	out := goCommand(t, "crds", "mod", "download", "-json", module)
	if err := json.Unmarshal([]byte(out), &downloaded); err != nil || downloaded.Dir == "" {
		t.Fatalf("downloading %s: %v\n%s", module, err, out)
	}
	for _, file := range files {
		args = append(args, "-f", filepath.Join(downloaded.Dir, file))
	}
	return args
}

// TestManifestsAreValid applies all manifests with strict validation, by the CRDs of prometheus-operator and
// cert-manager.
func TestManifestsAreValid(t *testing.T) {
	const monitoring = "example/prometheus-operator-crd/monitoring.coreos.com_"
	definitions := slices.Concat([]string{"create"},
		definitionsOfModule(t, "github.com/prometheus-operator/prometheus-operator",
			monitoring+"podmonitors.yaml", monitoring+"prometheusrules.yaml"),
		definitionsOfModule(t, "github.com/cert-manager/cert-manager",
			"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"))
	operators := shippedOperators(t)
	onBoth(t, devcluster.Options{}, func(t *testing.T, c cluster) {
		apply := func(t *testing.T, args ...string) (string, error) {
			t.Helper()
			return run(t, assetsKubectl(t), c, "", append([]string{"apply", "--validate=strict"}, args...)...)
		}
		// These CRDs can be larger than the annotation that kubectl apply writes.
		out, err := run(t, assetsKubectl(t), c, "", definitions...)
		if err != nil {
			t.Fatalf("creating the CRDs: %v\n%s", err, out)
		}
		for name, one := range operators {
			t.Run(name, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "manifests.yaml")
				// What the other objects need to be validated is applied, and they themselves only validated.
				writeFile(t, file, one.print(t, append(strings.Fields(one.flags), "--only=crds,namespace")...))
				if out, err := apply(t, "-f", file); err != nil {
					t.Fatalf("applying the CRDs and the namespace: %v\n%s", err, out)
				}
				flags := append(strings.Fields(one.flags), "--with=monitoring,network-policy")
				writeFile(t, file, one.print(t, flags...))
				if out, err := apply(t, "--dry-run=server", "-f", file); err != nil {
					t.Fatalf("applying the manifests: %v\n%s", err, out)
				}
				refuseMisspelt(t, file, func(file string) (string, error) {
					return apply(t, "--dry-run=server", "-f", file)
				})
			})
		}
	})
}

// refuseMisspelt shows that the validation is strict for kinds of the CRDs: a field with another name is refused.
func refuseMisspelt(t *testing.T, file string, apply func(file string) (string, error)) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for kind, field := range map[string]string{
		"PodMonitor": "podMetricsEndpoints", "PrometheusRule": "expr", "Certificate": "dnsNames",
	} {
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			if !strings.Contains(document, "\nkind: "+kind+"\n") {
				continue
			}
			misspelt := regexp.MustCompile(`(?m)^( +(?:- )?)`+field+`:`).ReplaceAllString(document, "${1}x"+field+":")
			writeFile(t, file, misspelt)
			if out, err := apply(file); err == nil || !strings.Contains(out, `unknown field "spec.`) ||
				!strings.Contains(out, "x"+field) {
				t.Errorf("%s: the field x%s must be refused: %v\n%s", kind, field, err, out)
			}
		}
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
