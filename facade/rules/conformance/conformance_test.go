package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// The namespaces of the requests. In one of them, the policies are in force; in the other one, the operator's webhooks.
const (
	policyNamespace   = "policy"
	operatorNamespace = "operator"
)

// TestSameVerdicts compares, for each request, the verdicts of the rules in plain Go and of a kube-apiserver: once with
// their policies and no operator, and once with the operator's webhooks. All requests are dry runs, so they do not
// affect each other.
func TestSameVerdicts(t *testing.T) {
	if len(requests) < 50 {
		t.Fatalf("the table has %d requests, want at least 50", len(requests))
	}
	served := start(t)
	for _, where := range []string{policyNamespace, operatorNamespace} {
		served.store(t, where)
	}
	served.install(t)
	served.operate(t)
	for i, request := range requests {
		t.Run(fmt.Sprintf("%02d-%s", i, request.policy), func(t *testing.T) {
			plain := evaluate(t, request.policy, request.made(t, i, request.object), request.made(t, i, request.old))
			want := strings.Replace(request.want, "NUMBER", fmt.Sprint(i), 1)
			if got := text(plain); got != want && (!plain.Failed || !strings.HasPrefix(got, want)) {
				t.Errorf("in plain Go: %q, want %q", got, want)
			}
			for _, where := range []string{policyNamespace, operatorNamespace} {
				served.await(t, where, request.policy)
				got, err := served.send(t.Context(), where, request.made(t, i, request.object), i)
				if err != nil {
					t.Fatalf("by the %s: %v", where, err)
				}
				if text(got) != text(plain) || got.Reason != plain.Reason || got.Code != plain.Code {
					t.Errorf("by the %s: %q (%s, %d); in plain Go: %q (%s, %d)",
						where, text(got), got.Reason, got.Code, text(plain), plain.Reason, plain.Code)
				}
			}
		})
	}
}

// evaluate evaluates the rules of a policy in plain Go, and returns the first denial.
func evaluate(t *testing.T, policy string, object, old *unstructured.Unstructured) rules.Verdict {
	t.Helper()
	for _, rule := range policies[policy] {
		verdict, err := rule.Evaluate(object, old)
		if err != nil {
			t.Fatal(err)
		}
		if !verdict.Allowed {
			return verdict
		}
	}
	return rules.Verdict{Allowed: true}
}

// await waits until a policy is in force: until the first request that it must deny is denied.
func (s *server) await(t *testing.T, where, policy string) {
	t.Helper()
	if s.activePolicies[where+policy] {
		return
	}
	for i, request := range requests {
		if request.policy != policy || request.want == allowed {
			continue
		}
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitTimeout, true,
			func(ctx context.Context) (bool, error) {
				verdict, err := s.send(ctx, where, request.made(t, i, request.object), i)
				last = err
				return err == nil && !verdict.Allowed, nil
			})
		if err != nil {
			t.Fatalf("waiting for %s by the %s: %v; the last error: %v", policy, where, err, last)
		}
		s.activePolicies[where+policy] = true
		return
	}
	t.Fatalf("the table must have a request that %s denies", policy)
}

// send sends a request to the API server and returns the verdict. The object is nil for a deletion.
func (s *server) send(
	ctx context.Context, where string, object *unstructured.Unstructured, number int,
) (rules.Verdict, error) {
	var err error
	stored := s.oldObjects[where][number]
	switch {
	case object == nil:
		err = s.api.Delete(ctx, stored, client.DryRunAll)
	case stored == nil:
		object.SetNamespace(where)
		err = s.api.Create(ctx, object, client.DryRunAll)
	default:
		object.SetNamespace(where)
		object.SetResourceVersion(stored.GetResourceVersion())
		err = s.api.Update(ctx, object, client.DryRunAll)
	}
	if err == nil {
		return rules.Verdict{Allowed: true}, nil
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return rules.Verdict{}, err
	}
	message, found := answer.Status().Message, false
	for _, before := range []string{" denied request: ", " denied the request: "} {
		if _, after, cut := strings.Cut(message, before); cut {
			message, found = after, true
			break
		}
	}
	if !found {
		return rules.Verdict{}, fmt.Errorf("the refusal is not by a rule: %w", err)
	}
	return rules.Verdict{
		Failed: strings.Contains(message, resultSeparator), Message: message, Reason: answer.Status().Reason,
		Code: answer.Status().Code,
	}, nil
}

// resultSeparator separates an expression from its error. Policies may put such errors into others.
const resultSeparator = "' resulted in error: "

// text returns a verdict in the form of the table.
func text(verdict rules.Verdict) string {
	_, problem, _ := strings.Cut(verdict.Message, resultSeparator)
	switch {
	case verdict.Allowed:
		return allowed
	case verdict.Failed:
		return "failed: " + problem
	default:
		return fmt.Sprintf("%d %s", verdict.Code, verdict.Message)
	}
}
