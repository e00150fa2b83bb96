package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The rule needs neither an operator nor a cluster to be tried.
func TestGrows(t *testing.T) {
	small, large := &Database{}, &Database{}
	small.Spec.Size, large.Spec.Size = 1, 2
	for name, tc := range map[string]struct {
		reason      string
		object, old client.Object
		allowed     bool
	}{
		"shrinks": {"it has data", small, large, false},
		"grows":   {"there is room", large, small, true},
		"new":     {"it was nothing", small, nil, true},
	} {
		verdict, err := grows.Evaluate(tc.object, tc.old)
		if err != nil || verdict.Allowed != tc.allowed {
			t.Errorf("%s: %s: got %+v, %v", name, tc.reason, verdict, err)
		}
	}
}

// The file is for kubectl apply, without Go.
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
		t.Errorf("go run . policy > policy.yaml writes it anew (-written, +printed):\n%s", d)
	}
}
