package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// patience is what a very slow machine needs; nobody waits for longer than it takes.
const patience = 5 * time.Minute

// label says which policy an object is for.
const label = "policy"

// TestSameVerdicts asks for each request what the rules say in plain Go, and what a kube-apiserver says that has their
// policies and nobody to ask. All requests are dry runs, so none of them is in the way of another one.
func TestSameVerdicts(t *testing.T) {
	if len(requests) < 50 {
		t.Fatalf("there are %d requests, want 50", len(requests))
	}
	api := start(t)
	stored := make([]*unstructured.Unstructured, len(requests))
	for i, request := range requests {
		if stored[i] = request.of(t, i, request.old, "old"); stored[i] != nil {
			if err := api.Create(t.Context(), stored[i]); err != nil {
				t.Fatalf("storing %s: %v", stored[i].GetName(), err)
			}
		}
	}
	install(t, api)
	for i, request := range requests {
		t.Run(fmt.Sprintf("%02d-%s", i, request.policy), func(t *testing.T) {
			awaitPolicy(t, api, stored, request.policy)
			object := request.of(t, i, request.object, "new")
			plain := evaluate(t, request.policy, object, stored[i])
			want := strings.Replace(request.want, "NUMBER", fmt.Sprint(i), 1)
			if got := text(plain); got != want && (!plain.Failed || !strings.HasPrefix(got, want)) {
				t.Errorf("in plain Go: %q, want %q", got, want)
			}
			served, err := send(t.Context(), api, object, stored[i])
			if err != nil {
				t.Fatal(err)
			}
			if text(served) != text(plain) || served.Reason != plain.Reason {
				t.Errorf("by the API server: %q (%s); in plain Go: %q (%s)",
					text(served), served.Reason, text(plain), plain.Reason)
			}
		})
	}
}

// start starts a control plane with the kind of the table.
func start(t *testing.T) client.Client {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test`, or `make assets` for the folder to set it to")
	}
	logf.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{filepath.Join("testdata", "crd.yaml")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
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
	return api
}

// install gives the API server all policies, each for the objects with its label.
func install(t *testing.T, api client.Client) {
	t.Helper()
	widgets := []admissionregistrationv1.Rule{
		{APIGroups: []string{"rules.example.org"}, APIVersions: []string{"v1"}, Resources: []string{"widgets"}},
	}
	for name, all := range policies {
		policy, binding, err := rules.Policy(name, widgets, all...)
		if err != nil {
			t.Fatal(err)
		}
		policy.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: name}}
		for _, object := range []client.Object{policy, binding} {
			if err := api.Create(t.Context(), object); err != nil {
				t.Fatalf("creating the policy %s: %v", name, err)
			}
		}
	}
}

// awaitPolicy waits until a policy is in force: until the first request is denied that is to be.
func awaitPolicy(t *testing.T, api client.Client, stored []*unstructured.Unstructured, policy string) {
	t.Helper()
	for i, request := range requests {
		if request.policy != policy || request.want == allowed {
			continue
		}
		object := request.of(t, i, request.object, "new")
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true,
			func(ctx context.Context) (bool, error) {
				verdict, err := send(ctx, api, object, stored[i])
				return !verdict.Allowed, err
			})
		if err != nil {
			t.Fatalf("waiting for the policy %s: %v", policy, err)
		}
		return
	}
	t.Fatalf("no request is denied by the policy %s: it would be enough if there were none", policy)
}

// of is the object of a request; nil without a spec.
func (r request) of(t *testing.T, number int, spec, name string) *unstructured.Unstructured {
	t.Helper()
	if spec == "" {
		return nil
	}
	if r.old != "" {
		name = "old"
	}
	made := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"rules.example.org/v1","kind":"Widget","metadata":{"namespace":"default",`+
		`"name":"%s-%d","labels":{"%s":%q}},"spec":%s}`, name, number, label, r.policy, spec)
	if err := made.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return made
}

// evaluate asks the rules of a policy in plain Go; the first that denies the request is heard.
func evaluate(t *testing.T, policy string, object, old *unstructured.Unstructured) rules.Verdict {
	t.Helper()
	for _, rule := range policies[policy] {
		verdict, err := rule.Evaluate(present(object), present(old))
		if err != nil {
			t.Fatal(err)
		}
		if !verdict.Allowed {
			return verdict
		}
	}
	return rules.Verdict{Allowed: true}
}

func present(object *unstructured.Unstructured) client.Object {
	if object == nil {
		return nil
	}
	return object
}

// send asks the API server, and reads its answer.
func send(ctx context.Context, api client.Client, object, stored *unstructured.Unstructured) (rules.Verdict, error) {
	var err error
	switch {
	case object == nil:
		err = api.Delete(ctx, stored, client.DryRunAll)
	case stored == nil:
		err = api.Create(ctx, object.DeepCopy(), client.DryRunAll)
	default:
		object = object.DeepCopy()
		object.SetResourceVersion(stored.GetResourceVersion())
		err = api.Update(ctx, object, client.DryRunAll)
	}
	if err == nil {
		return rules.Verdict{Allowed: true}, nil
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return rules.Verdict{}, err
	}
	_, message, denied := strings.Cut(answer.Status().Message, " denied request: ")
	if !denied {
		return rules.Verdict{}, fmt.Errorf("the request was refused by something else than a policy: %w", err)
	}
	return rules.Verdict{
		Failed: strings.Contains(message, resulted), Message: message, Reason: answer.Status().Reason,
		Code: answer.Status().Code,
	}, nil
}

// resulted stands before the errors of expressions, and after the expressions, which policies may put into others.
const resulted = "' resulted in error: "

// text is a verdict as the table has it.
func text(verdict rules.Verdict) string {
	_, problem, _ := strings.Cut(verdict.Message, resulted)
	switch {
	case verdict.Allowed:
		return allowed
	case verdict.Failed:
		return "failed: " + problem
	default:
		return fmt.Sprintf("%d %s", verdict.Code, verdict.Message)
	}
}
