package kopf_test

import (
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// printing returns an operator with a validating and a mutating handler.
func printing(settings kopf.AdmissionSettings) *kopf.Operator {
	op := kopf.New("test.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addWidgets}, Admission: settings,
	})
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("Quota", registerAdmission, kopf.Operations("CREATE"))
	widgets.MatchingLabels("tier=prod").Mutate("defaults", registerAdmission, kopf.IgnoreFailures())
	return op
}

// printedConfigurations is the validating configuration that the command prints for that operator.
const printedConfigurations = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: test.example.org
webhooks:
- admissionReviewVersions:
  - v1
  - v1beta1
  clientConfig:
    caBundle: b25l
    service:
      name: webhook
      namespace: team-a
      path: /test.example.org/validate/Quota
      port: 443
  failurePolicy: Fail
  matchPolicy: Equivalent
  name: quota-6c105cae.test.example.org
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
      - team-a
  rules:
  - apiGroups:
    - example.org
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - widgets
    scope: '*'
  sideEffects: None
  timeoutSeconds: 30
`

// TestPrintedWebhooks shows that the command manifests prints the webhook configurations of all admission handlers.
func TestPrintedWebhooks(t *testing.T) {
	withoutCluster(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t).Raw})
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	if err := os.WriteFile(ca, slices.Concat(key, cert), 0o600); err != nil {
		t.Fatal(err)
	}
	full := serve(t, widgetsOnly())
	code, out, errs := execute(t, printing(kopf.AdmissionSettings{}),
		"manifests", "--only", "webhooks", "--kubeconfig", full, "--service", "team-a/webhook", "--ca-file", ca)
	_, out, _ = strings.Cut(out, "\n---\n") // the Service
	first, second, _ := strings.Cut(out, "\n---\n")
	want := strings.Replace(printedConfigurations, "b25l", base64.StdEncoding.EncodeToString(cert), 1)
	if d := cmp.Diff(want, first+"\n"); d != "" || code != 0 || errs != "" {
		t.Errorf("exit code %d, %s\n-want, +got:\n%s", code, errs, d)
	}
	for _, want := range []string{
		"kind: MutatingWebhookConfiguration", "name: defaults.test.example.org", "failurePolicy: Ignore",
		"path: /test.example.org/mutate/defaults", "key: tier", "- prod",
	} {
		if !strings.Contains(second, want) {
			t.Errorf("the mutating configuration is printed: want %q in:\n%s", want, second)
		}
	}
	op := printing(kopf.AdmissionSettings{URL: "https://here"})
	code, out, errs = execute(t, op, "manifests", "--only", "webhooks", "--kubeconfig", full)
	if code != 0 || !strings.Contains(out, "url: https://here/test.example.org/validate/Quota") ||
		!strings.Contains(errs, "There is no caBundle") || strings.Contains(out, "Service") {
		t.Errorf("a URL is printed, and a missing caBundle is reported: exit code %d\n%s\n%s", code, errs, out)
	}
	managed := printing(kopf.AdmissionSettings{Managed: "shared", Service: "team-a/webhook"})
	code, out, errs = execute(t, managed, "manifests", "--only", "webhooks,rbac", "--kubeconfig", full)
	if code != 0 || strings.Contains(out, "Configuration") || !strings.Contains(out, "kind: Service\n") ||
		!strings.Contains(errs, `the operator keeps them itself, under the name "shared"`) ||
		!strings.Contains(out, "resourceNames: [shared]") || !strings.Contains(out, "[webhook-certificate]") {
		t.Errorf("an operator that manages the configurations gets the permissions, and a hint: exit code %d\n%s\n%s",
			code, errs, out)
	}
}

// TestPrintedWebhooksFail shows the errors for admission handlers.
func TestPrintedWebhooksFail(t *testing.T) {
	withoutCluster(t)
	api, config := printing(kopf.AdmissionSettings{URL: "https://here"}), serve(t, widgetsOnly())
	empty := serve(t, newAdmissionAPI())
	nowhere, _ := clusterOf(t)
	for name, tc := range map[string]struct {
		reason string
		op     *kopf.Operator
		args   []string
		code   int
		want   string
	}{
		"no way": {
			"neither --service nor --url is an error",
			printing(kopf.AdmissionSettings{}), []string{"--kubeconfig", config}, 1,
			"give --service or --url",
		},
		"two ways": {
			"--service together with --url is an error",
			api, []string{"--service", "a/b", "--url", "https://b"}, 2, "exclude each other"},
		"bad service": {
			"a Service without a namespace is an error",
			api, []string{"--kubeconfig", config, "--service", "webhook"}, 1,
			`Admission.Service: "webhook" is not understood`,
		},
		"no CA": {
			"a missing CA file is an error", api, []string{"--ca-file", "/nowhere"}, 2, "--ca-file: open /nowhere"},
		"no kind": {
			"a kind that the cluster does not have is an error with the handlers", api,
			[]string{"--kubeconfig", empty}, 1,
			`there is no kind "example.org/v1 Widget"; its handlers are "Quota" at `,
		},
		"no server": {
			"an operator that could not serve its handlers is an error", api,
			[]string{"--kubeconfig", config, "--only", "deployment"}, 1, "no certificate to serve them with",
		},
		"no cluster": {"a missing cluster is an error", api, nil, 1, "no cluster is configured"},
		"no answer": {
			"an unreachable API server is an error", api, []string{"--kubeconfig", nowhere}, 1,
			"looking for the kinds in the cluster",
		},
	} {
		code, out, errs := execute(t, tc.op, append([]string{"manifests", "--only", "webhooks"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errs, tc.want) || out != "" {
			t.Errorf("%s: %s: exit code %d\n%s\n%s", name, tc.reason, code, errs, out)
		}
	}
}
