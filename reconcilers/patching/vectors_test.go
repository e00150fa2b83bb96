package patching_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// sameJSON compares by type and value, as the vectors ask for: 1 equals 1.0.
func sameJSON(t *testing.T, what string, want, got any) {
	t.Helper()
	got = decode(encode(got))
	if !diff.Equal(want, got) {
		t.Errorf("%s: -want, +got:\n%s", what, cmp.Diff(want, got))
	}
}
