package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun shows that a command reaches an API server with an alpha feature, and that its exit code is passed on.
func TestRun(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	answer := filepath.Join(t.TempDir(), "answer")
	t.Setenv("KUBECONFIG", "") // the command changes it
	t.Setenv("PATH", os.Getenv("PATH"))
	command := []string{"sh", "-euc", `kubectl get namespace default -o name >"$0"; kill -TERM $$`, answer}
	code, err := run(command, "ShardedListAndWatch=true", audit, &bytes.Buffer{})
	if err != nil || code != 128+15 {
		t.Errorf("got the exit code %d, %v", code, err)
	}
	if got, err := os.ReadFile(answer); string(got) != "namespace/default\n" {
		t.Errorf("got %q, %v", got, err)
	}
	lines, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(lines), `/api/v1/namespaces/default`) {
		t.Errorf("the audit log does not have the request: %v", err)
	}
}
