package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// waitTimeout is the timeout for a very slow machine. All waits end as soon as possible.
const waitTimeout = 5 * time.Minute

// label is the label with the policy of an object.
const label = "policy"

// widgets is the resource of the table.
var widgets = admissionregistrationv1.Rule{
	APIGroups: []string{"rules.example.org"}, APIVersions: []string{"v1"}, Resources: []string{"widgets"},
}

// server is a kube-apiserver with the stored old objects of the table, by namespace and number.
type server struct {
	config         *rest.Config
	api            client.Client
	oldObjects     map[string][]*unstructured.Unstructured
	activePolicies map[string]bool
}

// start starts a control plane with the kind of the table.
func start(t *testing.T) *server {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	logf.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{filepath.Join("testdata", "crd.yaml")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping the control plane: %v", err)
		}
	})
	config.QPS = -1
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &server{config, api, map[string][]*unstructured.Unstructured{}, map[string]bool{}}
}

// store creates the old objects of the table in a new namespace.
func (s *server) store(t *testing.T, where string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: where}}
	if err := s.api.Create(t.Context(), namespace); err != nil {
		t.Fatalf("creating the namespace %s: %v", where, err)
	}
	for i, request := range requests {
		old := request.made(t, i, request.old)
		s.oldObjects[where] = append(s.oldObjects[where], old)
		if old == nil {
			continue
		}
		old.SetNamespace(where)
		if err := s.api.Create(t.Context(), old); err != nil {
			t.Fatalf("storing %s: %v", old.GetName(), err)
		}
	}
}

// install creates all policies in the API server, each for the objects with its label.
func (s *server) install(t *testing.T) {
	t.Helper()
	for name, all := range policies {
		policy, binding, err := rules.Policy(name, []admissionregistrationv1.Rule{widgets}, all...)
		if err != nil {
			t.Fatal(err)
		}
		matches := policy.Spec.MatchConstraints
		matches.ObjectSelector, matches.NamespaceSelector = selectors(name, policyNamespace)
		for _, object := range []client.Object{policy, binding} {
			if err := s.api.Create(t.Context(), object); err != nil {
				t.Fatalf("creating the policy %s: %v", name, err)
			}
		}
	}
}

// selectors returns the selectors for the objects of a policy in a namespace.
func selectors(policy, where string) (objects, namespaces *metav1.LabelSelector) {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: policy}},
		&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: where}}
}

// made returns an object of a request, or nil without a spec.
func (r request) made(t *testing.T, number int, spec string) *unstructured.Unstructured {
	t.Helper()
	if spec == "" {
		return nil
	}
	name := "old"
	if r.old == "" {
		name = "new"
	}
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"rules.example.org/v1","kind":"Widget","metadata":{"name":"%s-%d",`+
		`"labels":{"%s":%q}},"spec":%s}`, name, number, label, r.policy, spec)
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return object
}
