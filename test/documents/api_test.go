package documents_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

// TestAPI compares the public API with the golden file, so that reviews show every change.
func TestAPI(t *testing.T) {
	const golden = "testdata/api.txt"
	got, err := documents.API(os.DirFS(root), layers.Promised...)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the API differs from %s; if that is meant, go test ./test/documents -update rewrites it "+
			"(-golden, +sources):\n%s", golden, d)
	}
}
