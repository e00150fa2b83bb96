package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestGrows shows that a rule can be tested without an operator and a cluster.
func TestGrows(t *testing.T) {
	small, large := &Database{}, &Database{}
	small.Spec.Size, large.Spec.Size = 1, 2
	for name, tc := range map[string]struct {
		reason      string
		object, old client.Object
		allowed     bool
	}{
		"shrinks": {"a database must not shrink", small, large, false},
		"grows":   {"a database may grow", large, small, true},
		"new":     {"a new database is allowed", small, nil, true},
	} {
		verdict, err := growthRule.Evaluate(tc.object, tc.old)
		if err != nil || verdict.Allowed != tc.allowed {
			t.Errorf("%s: %s: got %+v, %v", name, tc.reason, verdict, err)
		}
	}
}

// TestPolicyIsPrinted shows that policy.yaml, which is for kubectl apply, is up to date.
func TestPolicyIsPrinted(t *testing.T) {
	var printed bytes.Buffer
	if err := printPolicy(&printed); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(written), printed.String()); d != "" {
		t.Errorf("policy.yaml is out of date, run: go run . policy > policy.yaml (-written, +printed):\n%s", d)
	}
}
